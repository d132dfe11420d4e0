"""The day's spending of an agent: exact with many processes, and a reservation that is never settled stays spent."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path

import pytest

from ra.core.errors import Stopped
from ra.timeline.spending import DailyLimits, DailySpending, PostgresSpending, SpendingDatabase, SqliteSpending

Open = Callable[[], SpendingDatabase]


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Opens the same database anew, as another process would."""
    if request.param == "sqlite":
        return lambda: SqliteSpending(tmp_path / "spending.db")
    url = request.getfixturevalue("postgres").fresh()
    return lambda: PostgresSpending(url)


def test_a_reservation_counts_until_it_is_settled(database: Open) -> None:
    spending = DailySpending(database(), "ops", DailyLimits(1.0))
    reservation, granted = spending.reserve("web", "ann", Decimal("0.6"), Decimal("0.1"))
    assert granted == Decimal("0.6")
    other, less = DailySpending(database(), "ops", DailyLimits(1.0)).reserve(
        "web", "bob", Decimal("0.6"), Decimal("0.1")
    )
    assert less == Decimal("0.4")
    with pytest.raises(Stopped, match=r"budget of ops: \$1\.0000 of \$1 a day"):
        spending.reserve("web", "ann", Decimal("0.01"), Decimal("0.01"))
    spending.settle("web", "ann", reservation, Decimal("0.25"))
    assert spending.today() == {
        ("agent", ""): Decimal("0.65"),
        ("channel", "web"): Decimal("0.65"),
        ("sender", "ann"): Decimal("0.25"),
        ("sender", "bob"): Decimal("0.4"),  # its process died: the worst case stays
    }
    spending.settle("web", "ann", reservation, Decimal("0.05"))  # a retry of the same call was billed too
    assert spending.today()["sender", "ann"] == Decimal("0.30")
    assert other != reservation


def test_channels_and_senders_have_limits_of_their_own_and_a_day_ends(database: Open) -> None:
    now = [0.0]
    limits = DailyLimits(10, per_channel=1, per_sender=0.5)
    spending = DailySpending(database(), "ops", limits, clock=lambda: now[0])
    assert spending.reserve("web", "ann", Decimal(2), Decimal("0.1"))[1] == Decimal("0.5")
    with pytest.raises(Stopped, match="for the sender ann"):
        spending.reserve("web", "ann", Decimal("0.1"), Decimal("0.1"))
    assert spending.reserve("web", "bob", Decimal("0.5"), Decimal("0.1"))[1] == Decimal("0.5")
    with pytest.raises(Stopped, match="for the channel web"):
        spending.reserve("web", "cid", Decimal("0.1"), Decimal("0.1"))
    assert spending.reserve("mail", "cid", Decimal("0.1"), Decimal("0.1"))[1] == Decimal("0.1")
    now[0] = 86_400
    assert spending.reserve("web", "ann", Decimal("0.5"), Decimal("0.1"))[1] == Decimal("0.5")


def test_many_at_once_never_pass_the_limit(database: Open) -> None:
    def spend(number: int) -> Decimal:
        spending = DailySpending(database(), "ops", DailyLimits(0.5))
        total = Decimal(0)
        for call in range(6):
            try:
                reservation, _ = spending.reserve("web", f"s{number}", Decimal("0.03"), Decimal("0.03"))
            except Stopped:
                continue
            cost = Decimal("0.011") if call % 2 else Decimal("0.03")
            spending.settle("web", f"s{number}", reservation, cost)
            total += cost
        return total

    with ThreadPoolExecutor(6) as pool:
        spent = sum(pool.map(spend, range(6)), Decimal(0))
    assert spent <= Decimal("0.5")
    assert DailySpending(database(), "ops", DailyLimits(0.5)).today()["agent", ""] == spent
