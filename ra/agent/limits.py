"""May the run go on? Limits on iterations, tokens, dollars and seconds, checked before money is spent."""

from decimal import Decimal

import msgspec

from ra.core.errors import Stopped, UserError
from ra.core.model import Usage


class Limits(msgspec.Struct, frozen=True):
    """0 means no limit."""

    iterations: int = 0
    tokens: int = 0
    dollars: float = 0
    seconds: float = 0

    def check(self, *, iteration: int, usage: Usage, dollars: Decimal, seconds: float, expected: int = 0) -> None:
        """Raise Stopped when the call number `iteration`, of about `expected` input tokens, must not be made."""
        spent = usage.total_input + usage.output
        if self.iterations and iteration > self.iterations:
            raise Stopped(f"Stopped by maxIterations: {self.iterations} model calls were made.")
        if self.tokens and spent + expected >= self.tokens:
            more = f", and the next call needs about {expected}" if spent < self.tokens else ""
            raise Stopped(f"Stopped by maxTokenBudget: {spent} of {self.tokens} tokens are spent{more}.")
        if self.dollars and dollars >= Decimal(str(self.dollars)):
            raise Stopped(f"Stopped by maxCost: ${dollars:.4f} of ${self.dollars:g} are spent.")
        if self.seconds and seconds >= self.seconds:
            raise Stopped(f"Stopped by maxDuration: {seconds:.1f} s of {self.seconds:g} s are over.")


def need_price(limits: Limits, model: str, *, known: bool) -> None:
    """A budget in dollars cannot be kept for a model whose price nobody knows."""
    if limits.dollars and not known:
        raise UserError(
            f"maxCost is set, but no price is known for {model!r}. Add it under app.prices in ra.yaml, "
            f"such as `{model}: {{input: 3, output: 15}}` (dollars per million tokens), or drop maxCost."
        )
