import asyncio
import os
import resource
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from ra.core.events import ToolOutput
from ra.core.messages import Text
from ra.system.environment import clean
from ra.system.process import Ends, Launch
from ra.tools.policy.paths import Project
from ra.tools.policy.rules import parse_rule
from ra.tools.sandbox.box import Access
from ra.tools.sandbox.find import Launcher
from ra.tools.shell import BashArgs, Shell
from tests.tools.kit import Kit, words

FREE = (parse_rule("Bash", "allow"),)
"""Outside any sandbox."""

KINDS = ["outside", *(["bubblewrap"] if shutil.which("bwrap") else [])]


@pytest.fixture(params=KINDS)
def kit(request: pytest.FixtureRequest, tmp_path: Path) -> Kit:
    root = tmp_path / "project"
    root.mkdir()
    return Kit(root, rules=FREE if request.param == "outside" else ())


def alive(marker: str) -> list[str]:
    """Processes whose command line holds the marker."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue
        if f"sleep {marker}" in line and "bash" not in line and "python" not in line and "bwrap" not in line:
            found.append(line)
    return found


def gone_within(marker: str, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while alive(marker):
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def test_output_and_exit_code_are_the_result(kit: Kit) -> None:
    assert kit.text("Bash", command="echo one; echo two >&2") == "one\ntwo"
    assert kit.error("Bash", command="echo no; exit 3") == "no\n[exit code 3]"
    assert kit.text("Bash", command="true") == "(no output)"
    assert "[exit code 137]" in kit.error("Bash", command="kill -9 $$")


def test_the_working_directory_lasts(kit: Kit) -> None:
    kit.text("Bash", command="mkdir -p sub/deep && cd sub/deep")
    assert kit.text("Bash", command="pwd") == str(kit.root / "sub/deep")
    assert "lies outside the project" in kit.text("Bash", command="cd /usr")
    assert kit.text("Bash", command="pwd") == str(kit.root / "sub/deep")
    kit.text("Bash", command="cd ..; rmdir deep")
    assert kit.text("Bash", command="pwd") == str(kit.root / "sub")


def test_a_time_out_ends_the_command(kit: Kit) -> None:
    began = time.monotonic()
    assert "[timed out after 0.4 s; killed]" in kit.error("Bash", command="echo begun; sleep 300", timeout=0.4)
    assert time.monotonic() - began < 60


def test_all_descendants_are_gone_within_a_second(kit: Kit) -> None:
    stubborn = "nohup setsid bash -c 'trap \"\" TERM; sleep 4711.5'"
    command = f"trap '' TERM HUP INT; (setsid sleep 4711.5 &); {stubborn} & sleep 4711.5"
    kit.error("Bash", command=command, timeout=0.5)
    assert gone_within("4711.5", 1)


def test_what_a_finished_command_leaves_behind_is_ended(kit: Kit) -> None:
    began = time.monotonic()
    assert kit.text("Bash", command="(setsid sleep 4712.5 &); echo done") == "done"
    assert time.monotonic() - began < 60
    assert gone_within("4712.5", 1)


def test_cancelling_ends_the_command(kit: Kit) -> None:
    async def main() -> None:
        task = asyncio.create_task(kit.run("Bash", command="setsid sleep 4713.5 & sleep 4713.5"))
        await asyncio.sleep(0.4)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert gone_within("4713.5", 1)


def test_a_command_that_is_cancelled_while_it_starts_leaves_nothing_behind(kit: Kit) -> None:
    async def main() -> None:
        await kit.run("Bash", command="true")  # what is loaded once does not count
        for milliseconds in range(40):
            task = asyncio.create_task(kit.run("Bash", command="setsid sleep 4715.5 & sleep 4715.5"))
            await asyncio.sleep(milliseconds / 1000)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(main())
    assert gone_within("4715.5", 1)


@pytest.mark.parametrize("rules", [FREE, ()] if shutil.which("bwrap") else [FREE])
def test_killing_ra_kills_its_commands(tmp_path: Path, rules: tuple[object, ...]) -> None:
    program = f"""
        import asyncio, os
        from pathlib import Path
        from ra.tools.policy.rules import parse_rule
        from tests.tools.kit import Kit
        kit = Kit(Path({str(tmp_path)!r}), rules=(parse_rule("Bash", "allow"),) if {bool(rules)} else ())
        kit.done("Bash", command="setsid sleep 4714.5 & (setsid nohup sleep 4714.5 &) ; sleep 4714.5")
    """
    ra = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], cwd=Path(__file__).parents[2])
    end = time.monotonic() + 20
    while len(alive("4714.5")) < 3 and time.monotonic() < end:
        time.sleep(0.05)
    assert len(alive("4714.5")) >= 3
    ra.send_signal(signal.SIGKILL)
    ra.wait()
    assert gone_within("4714.5", 1.5)


def test_output_streams_while_the_command_runs(kit: Kit) -> None:
    kit.text("Bash", command="echo first; sleep 0.3; echo second")
    shown = [event.text for event in kit.events if isinstance(event, ToolOutput)]
    assert shown == ["first\n", "second\n"]


def test_a_background_job_is_read_and_stopped(kit: Kit) -> None:
    async def main() -> None:
        begun = words(await kit.run("Bash", command="echo one; sleep 0.3; echo two; sleep 4715.5", background=True))
        assert "Job 1" in begun
        output = ""
        while "two" not in output:
            await asyncio.sleep(0.1)
            output += words(await kit.run("Job", job=1)).removesuffix("[job 1 is running]").strip() + "\n"
        assert output.split() == ["one", "two"]
        assert words(await kit.run("Job", job=1)) == "[job 1 is running]"
        assert words(await kit.run("Job", job=1, stop=True)) == "[job 1 was stopped]"
        assert "There is no job 9" in words(await kit.run("Job", job=9))

    asyncio.run(main())
    assert gone_within("4715.5", 1)


def test_closing_ends_background_jobs(kit: Kit) -> None:
    async def main() -> None:
        await kit.run("Bash", command="sleep 4716.5", background=True)
        await kit.box.close()

    asyncio.run(main())
    assert gone_within("4716.5", 1)


@pytest.mark.skipif("bubblewrap" not in KINDS, reason="needs a sandbox")
def test_what_a_job_left_that_nobody_read_is_told_at_the_end(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    kit = Kit(tmp_path / "project")

    async def main() -> tuple[list[str], list[str]]:
        await kit.run("Bash", command="echo obey > AGENTS.md; sleep 4717.5", background=True)
        while not (kit.root / "AGENTS.md").exists():
            await asyncio.sleep(0.02)
        return await kit.box.close(), await kit.box.close()

    notes, again = asyncio.run(main())
    aside = kit.root / "AGENTS.md.set-aside"
    assert notes == [
        f"Job 1 (echo obey > AGENTS.md; sleep 4717.5): {kit.root}/AGENTS.md is a protected name; "
        f"what was written is in {aside}. Ask the user before it is used."
    ]
    assert aside.read_text() == "obey\n"
    assert again == []


def test_children_see_no_keys(tmp_path: Path) -> None:
    env = {
        "PATH": os.environ["PATH"],
        "HOME": "/h",
        "ANTHROPIC_API_KEY": "sk-1",
        "MY_DB": "postgres://u:p@h",
        "AWS_X": "1",
    }
    kit = Kit(tmp_path, rules=FREE, env=env)
    printed = kit.text("Bash", command="env")
    assert f"HOME={tmp_path.parent}/home" in printed  # the place's, private in the box
    assert not [word for word in ("sk-1", "MY_DB", "AWS_X") if word in printed]


def test_the_environment_is_clean_but_for_what_the_user_wants() -> None:
    env = {"LANG": "C", "OPENAI_API_KEY": "k", "PATH": "/x", "GOFLAGS": "-x", "XDG_DATA_HOME": "/d", "MY_VAR": "v"}
    kept = clean(env, ("MY_VAR",))
    assert {name: value for name, value in kept.items() if name in env} == {
        "LANG": "C", "PATH": "/x", "GOFLAGS": "-x", "XDG_DATA_HOME": "/d", "MY_VAR": "v",
    }  # fmt: skip


def test_a_gigabyte_of_output_takes_constant_memory(tmp_path: Path) -> None:
    kit = Kit(tmp_path, rules=FREE)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    text = kit.text(
        "Bash", command="echo first; head -c 1000000000 /dev/zero | tr '\\0' x; echo; echo last", timeout=60
    )
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert text.startswith("first\n")
    assert text.endswith("last")
    assert "bytes left out" in text
    assert len(text) < 1_100_000
    assert (after - before) / 1024 < 60


def test_both_ends_are_kept_and_characters_stay_whole() -> None:
    ends = Ends(head_bytes=5, tail_bytes=5)
    for piece in ("aéé", "x" * 50, "ééb"):
        ends.add(piece.encode())
    assert ends.text() == "aéé\n[… 50 bytes left out …]\nééb"
    small = Ends(head_bytes=4, tail_bytes=4)
    small.add("ééé".encode())
    assert small.text() == "ééé"
    torn = Ends(head_bytes=2, tail_bytes=2)
    torn.add("aébcéz".encode())
    assert torn.text() == "a\n[… 4 bytes left out …]\nz"


def test_invalid_bytes_become_text(kit: Kit) -> None:
    assert kit.text("Bash", command="printf 'a\\xffb'") == "a\ufffdb"


def test_an_empty_command_is_a_mistake(kit: Kit) -> None:
    assert "missing required field `command`" in kit.error("Bash")
    assert "needs a command" in kit.error("Bash", command=" ")
    assert "needs a command" in kit.error("Bash", command="  ")
    assert "NUL" in kit.error("Bash", command="a\0b")


@pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is not installed")
def test_a_syntax_error_is_told_by_the_shell(tmp_path: Path) -> None:
    assert "syntax error" in Kit(tmp_path).error("Bash", command="if")


class SlowBox(Launcher):
    """A box whose first two attempts fail, as when a socket that it masks vanishes."""

    def __init__(self, place: Project) -> None:
        super().__init__("off", place)
        self.started: list[str] = []

    def launch(self, script: str, cwd: str, access: Access) -> Launch:
        self.started.append(script)
        reached = len(self.started) > 2
        return Launch(["bash", "-c", script if reached else "echo box: no; exit 1"], began=lambda: reached)


def test_a_command_that_its_box_did_not_reach_is_tried_again(tmp_path: Path) -> None:
    place = Project(str(tmp_path), str(tmp_path))
    launcher = SlowBox(place)
    shell = Shell(place, {"PATH": os.environ["PATH"]}, launcher, timeout_s=10)
    done = asyncio.run(shell.run(BashArgs("echo hello; exit 3"), lambda text: None))
    assert [block.text for block in done.content if isinstance(block, Text)] == ["hello\n[exit code 3]"]
    assert len(launcher.started) == 3


@pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is not installed")
def test_a_command_that_meets_a_read_only_file_says_why(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project/AGENTS.md").write_text("rules")
    kit = Kit(tmp_path / "project")
    assert "outside: true asks the user" in words(kit.done("Bash", command="echo x > AGENTS.md"))
    assert "outside: true" not in words(kit.done("Bash", command="echo x > notes.md; cat notes.md"))
