"""The reaper by itself, in a Python of ours, so that `make coverage` sees it; the boxes' tests run it as ra does."""

import marshal
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from ra.system import reaper

START = "import marshal, sys; from ra.system import reaper; reaper.main(marshal.load(sys.stdin.buffer))"


def started(*argv: str, parent: int | None = None, first: Callable[[], None] | None = None) -> "subprocess.Popen[str]":
    """`-S` would hide what measures, so the reaper runs without it here."""
    order = marshal.dumps({"argv": list(argv), "parent": os.getpid() if parent is None else parent})
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        [sys.executable, "-c", START], stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, preexec_fn=first
    )
    assert process.stdin
    process.stdin.write(order)
    process.stdin.close()
    process.stdin = None
    return process


def ended(process: "subprocess.Popen[str]") -> tuple[int, str]:
    output, _ = process.communicate(timeout=30)
    return process.returncode, output.decode()


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False


def line_of(path: Path) -> str:
    """What a command writes into a file, as soon as it has."""
    end = time.monotonic() + 20
    while not (path.exists() and path.read_text().endswith("\n")):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)
    return path.read_text().strip()


def test_the_end_of_the_command_is_its_own() -> None:
    assert ended(started("sh", "-c", "echo out; exit 3")) == (3, "out\n")
    assert ended(started("sh", "-c", "kill -9 $$")) == (137, "")


def test_a_signal_that_comes_before_it_is_waited_for_is_not_lost() -> None:
    def interrupted() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        os.kill(os.getpid(), signal.SIGTERM)

    assert ended(started("sleep", "60", first=interrupted)) == (143, "")


def test_a_command_that_is_not_there_is_told() -> None:
    code, output = ended(started("no-such-program-at-all"))
    assert (code, output) == (126, "ra: the command could not be started: [Errno 2] No such file or directory\n")


def test_orphans_end_with_the_command(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    orphan = f"setsid sh -c 'echo $$ > {note}; exec sleep 600' >/dev/null 2>&1 &"
    waiting = f"while [ ! -s {note} ]; do sleep 0.02; done"
    assert ended(started("sh", "-c", f"({orphan}) ; (exit 0) & {waiting}")) == (0, "")
    assert not is_alive(int(note.read_text()))


def test_an_orphan_that_ends_first_is_buried_and_the_command_goes_on() -> None:
    assert ended(started("sh", "-c", "(setsid true &); sleep 0.3; echo on; exit 4")) == (4, "on\n")


def test_any_number_of_orphans_end(tmp_path: Path) -> None:
    note = tmp_path / "pids"
    many = "for n in 1 2 3 4 5 6 7 8; do setsid sleep 600 >/dev/null 2>&1 & echo $!; done"
    assert ended(started("sh", "-c", f"{many} > {note}")) == (0, "")
    assert [pid for pid in note.read_text().split() if is_alive(int(pid))] == []


def test_a_signal_ends_the_command_and_all_below_it(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    process = started("sh", "-c", f"trap '' TERM; (trap '' TERM; setsid sleep 600) & echo $! > {note}; wait")
    below = int(line_of(note))
    process.send_signal(signal.SIGTERM)
    assert ended(process) == (143, "")
    assert not is_alive(below)


def test_nothing_runs_when_ra_has_died_before(tmp_path: Path) -> None:
    assert ended(started("touch", str(tmp_path / "ran"), parent=1)) == (143, "")
    assert not (tmp_path / "ran").exists()


def test_without_a_file_of_children_ps_knows_them() -> None:
    with subprocess.Popen(["sleep", "600"]) as child:
        assert child.pid in reaper.listed_children()
        child.kill()
    assert child.pid not in reaper.listed_children()
