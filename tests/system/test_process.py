"""What does a command that nobody waits for any more leave behind?"""

import asyncio
from pathlib import Path

import pytest

from ra.system.process import Launch, start
from tests.tools.test_bash import gone_within


@pytest.mark.parametrize("cancellations", [1, 2])
@pytest.mark.parametrize("argv", [("/bin/sleep", "4716.5"), ("/nonexistent/program",)])
def test_a_start_that_is_cancelled_stays_cancelled_and_is_cleaned_up(
    tmp_path: Path, argv: tuple[str, ...], cancellations: int
) -> None:
    finished: list[bool] = []

    def finish() -> tuple[str, ...]:
        finished.append(True)
        return ()

    async def main() -> None:
        launch = Launch(argv, finish=finish)
        starting = asyncio.create_task(start(launch, cwd=str(tmp_path), env={}, say=print))
        for _ in range(cancellations):
            await asyncio.sleep(0)
            starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        async with asyncio.timeout(60):
            while not finished:
                await asyncio.sleep(0.01)

    asyncio.run(main())
    assert finished == [True]
    assert gone_within("4716.5", 1)
