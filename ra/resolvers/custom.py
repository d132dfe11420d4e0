"""Custom resolvers: a Python file of the user with `name`, `pattern` and `resolve(ref, ctx)`."""

import re
from pathlib import Path
from typing import Any

from ra.core.errors import HookFailed, UserError
from ra.core.functions import CallPlugin
from ra.core.messages import Text
from ra.core.text import clean, label, shown
from ra.resolvers.files import MAX_BYTES
from ra.resolvers.resolver import Resolution, ResolverContext

TIMEOUT_S = 30.0


class Custom:
    """A resolver from a file. `module` is the result of `plugins.load`. Raises UserError."""

    def __init__(self, module: Any, *, call: CallPlugin, name: str = "", timeout_s: float = TIMEOUT_S) -> None:
        self.file = Path(module.__file__)
        self.name = name or str(getattr(module, "name", self.file.stem))
        self.pattern = self._pattern(getattr(module, "pattern", None))
        self._resolve = getattr(module, "resolve", None)
        if not callable(self._resolve):
            raise UserError(f"{self.file} has no function resolve(ref, ctx); add one.")
        self._call = call
        self._timeout_s = timeout_s

    def _pattern(self, pattern: Any) -> re.Pattern[str]:
        try:
            compiled: re.Pattern[str] = re.compile(pattern)
        except (re.error, TypeError) as error:
            raise UserError(f"{self.file}: pattern {pattern!r} is not a valid regular expression: {error}.") from error
        if compiled.groups != 1 or isinstance(pattern, bytes):
            raise UserError(f"{self.file}: pattern must have one group, the reference; it has {compiled.groups}.")
        return compiled

    async def resolve(self, ref: str, place: ResolverContext, *, in_code: bool) -> Resolution:
        try:
            answer = await self._call(
                self._resolve, ref, place, timeout_s=self._timeout_s, file=self.file, what=f"resolver {self.name}"
            )
        except HookFailed as failure:
            return Resolution(warnings=(f"{shown(ref)}: not resolved: {failure}",))
        if answer is None:
            return Resolution()
        if not isinstance(answer, str):
            kind = type(answer).__name__
            return Resolution(warnings=(f"{shown(ref)}: not resolved: {self.file} returned {kind}, not text or None.",))
        text = clean(answer)
        warnings: tuple[str, ...] = ()
        if len(text) > MAX_BYTES:
            text = f"{text[:MAX_BYTES]}\n[… the first {MAX_BYTES} of {len(text)} characters]"
            warnings = (f"{shown(ref)}: only the first {MAX_BYTES} characters of {len(answer)} are attached.",)
        return Resolution((Text(label(_tag(self.name), text, ref=ref)),), warnings, (ref,))


def _tag(name: str) -> str:
    return re.sub(r"[^a-z0-9-]+", "-", name.lower()).strip("-") or "resolved"
