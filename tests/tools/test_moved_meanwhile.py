"""What a command moves, closes or hides so that the next look, mount or session takes it for something else."""

import asyncio
import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ra.config.paths import programs
from ra.tools.policy.rules import parse_rule
from ra.tools.sandbox import bubblewrap
from ra.tools.sandbox.box import Host
from ra.tools.sandbox.host import closed_programs
from ra.tools.sandbox.scan import Scan
from tests.tools.kit import Kit
from tests.tools.world import CANARY, NOBODY, World, outside_tmp, people, world

needs_bwrap = pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is not installed")


@contextlib.contextmanager
def nobody() -> Iterator[None]:
    """For root may look into everything."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def test_what_was_special_in_one_session_is_no_package_in_the_next(tmp_path: Path) -> None:
    root, memory = tmp_path / "project", str(tmp_path / "memory")
    (root / "d").mkdir(parents=True)
    (tmp_path / "outside").write_text("x")
    os.link(tmp_path / "outside", root / "d/linked")
    (root / "d/.env").write_text("x")
    package = root / "node_modules/a"
    package.mkdir(parents=True)
    os.link(tmp_path / "outside", tmp_path / "store")
    (package / "file").write_text("x")
    os.link(package / "file", tmp_path / "stored")
    before = Scan(str(root), (), memory).look()
    (root / "d").rename(root / "node_modules/d")
    after = Scan(str(root), (), memory).look()
    assert (before.linked, before.secret) == ({str(root / "d/linked")}, {str(root / "d/.env")})
    assert after.linked == {str(root / "node_modules/d/linked")}
    assert after.secret == {str(root / "node_modules/d/.env")}


def many_folders(root: Path) -> None:
    """So many that a look at all of them is not cheap."""
    for number in range(1000):
        (root / f"{number % 30}/{number}").mkdir(parents=True)


def test_a_folder_whose_time_was_set_back_is_read_again(tmp_path: Path) -> None:
    many_folders(tmp_path)
    scan = Scan(str(tmp_path), ("AGENTS.md",))
    scan.look()
    before = (tmp_path / "1/1").stat()
    for _ in range(9000):  # more than the kernel keeps for who watches
        for name in ("a", "b"):
            os.close(os.open(tmp_path / name, os.O_CREAT | os.O_WRONLY))
            (tmp_path / name).unlink()
    (tmp_path / "1/1/AGENTS.md").write_text("x")
    os.utime(tmp_path / "1/1", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert scan.look().guarded == {str(tmp_path / "1/1/AGENTS.md")}


def test_a_closed_folder_is_known_as_one_until_it_is_open_and_then_looked_into() -> None:
    with outside_tmp() as base:
        root = base / "project"
        many_folders(root)
        (root / "d/evil").mkdir(parents=True)
        (root / "d/file").write_text("x")
        os.link(root / "d/file", base / "linked")
        (root / "d/evil/AGENTS.md").write_text("x")
        if os.geteuid() == 0:
            subprocess.run(["chown", "-R", str(NOBODY), base], check=True)
        with nobody():
            (root / "d").chmod(0o400)
            scan = Scan(str(root), ("AGENTS.md",))
            closed = scan.look()
            (root / "d").chmod(0o755)
            opened = scan.look()
    assert (closed.closed, closed.linked, closed.guarded) == ({str(root / "d")}, set(), set())
    assert (opened.closed, opened.guarded) == (set(), {str(root / "d/evil/AGENTS.md")})
    assert opened.linked == {str(root / "d/file")}


@needs_bwrap
@pytest.mark.parametrize("uid", people())
def test_a_folder_that_holds_what_is_mounted_cannot_be_moved(uid: int) -> None:
    with world(uid) as made:
        for name in ("secret", "links", "repository/.git/refs", "repository/.git/objects"):
            (made.project / name).mkdir(parents=True)
        (made.project / "secret/.env").write_text(CANARY)
        os.link(made.outside / "linked.txt", made.project / "links/b")
        box = bubblewrap.find(made.place(), Host())
        assert box
        made.own(box)
        output = made.run(box, "for d in secret links repository; do mv $d x; mv x $d; done; cat */.env; ls")
        box.close()
    assert output.count("Device or resource busy") == 3
    assert CANARY not in output


@needs_bwrap
@pytest.mark.parametrize("swapped", ["key", ".git"])
def test_what_was_swapped_before_it_was_mounted_stops_the_command(swapped: str) -> None:
    """A job that still runs could do that in a folder that it has made."""
    with world(os.getuid()) as made:
        box = bubblewrap.find(made.place(), Host())
        assert box
        folder, elsewhere = made.project / "made", made.project / "other"
        for path in (folder, elsewhere):
            path.mkdir()
            for name in ("refs", "objects") if swapped == ".git" else ():
                (path / ".git" / name).mkdir(parents=True)
            (path / "key").write_text("x")
            (path / "twin").write_text("x")
        if swapped == "key":
            (folder / "twin").unlink()
            os.link(made.outside / "linked.txt", folder / "twin")
        output = started(made, box, "touch ran", folder, elsewhere)
        box.close()
        assert not (made.project / "ran").exists()
    assert output == "Folders were moved while the command was being started, so it was not run. Run it again.\n"


def started(made: World, box: bubblewrap.Bubblewrap, command: str, folder: Path, elsewhere: Path) -> str:
    """What a command prints when a link is put in the place of a folder after the box was planned."""
    launch = box.launch(["bash", "-c", command], str(made.project))
    folder.rename(f"{folder}2")
    folder.symlink_to(elsewhere.name)
    done = subprocess.run(
        launch.argv, pass_fds=launch.fds, env={"PATH": os.defpath, **launch.env}, capture_output=True, cwd=made.project
    )
    for descriptor in launch.fds:
        os.close(descriptor)
    folder.unlink()
    launch.finish()
    return (done.stderr + done.stdout).decode()


@needs_bwrap
def test_the_check_lets_ordinary_names_through() -> None:
    """Names as the kernel escapes them, and what is mounted anyway."""
    with world(os.getuid()) as made:
        box = bubblewrap.find(made.place(), Host())
        assert box
        for name in ("a b\\c\td\ne", "ä[$(touch x)]"):
            (made.project / name).mkdir()
            (made.project / name / ".env").write_text(CANARY)
            (made.project / name / "AGENTS.md").write_text("x")
            (made.project / name / ".git/refs").mkdir(parents=True)
            (made.project / name / ".git/objects").mkdir()
        assert made.run(box, "cat */.env 2>/dev/null; echo through; ls x 2>/dev/null") == "through\n"
        box.close()


@needs_bwrap
def test_a_working_folder_that_became_a_link_is_left(tmp_path: Path) -> None:
    root, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    root.mkdir()
    elsewhere.mkdir()
    kit = Kit(root, rules=(parse_rule("Bash(touch made)", "allow", outside=True),))

    async def main() -> None:
        await kit.run("Bash", command="mkdir x; cd x")
        (root / "x").rmdir()
        (root / "x").symlink_to(elsewhere)
        await kit.run("Bash", command="touch made", outside=True)
        await kit.box.close()

    asyncio.run(main())
    assert [path.name for path in elsewhere.iterdir()] == []
    assert (root / "made").exists()


def test_a_folder_of_path_counts_before_it_is_there(tmp_path: Path) -> None:
    env = {"PATH": f"{tmp_path}/bin:/usr/bin:{tmp_path}/.venv/bin"}
    assert programs(env, tmp_path) == [f"{tmp_path}/bin", f"{tmp_path}/.venv/bin"]


def test_closed_files_beside_installed_programs_are_found() -> None:
    with outside_tmp() as folder:
        if not folder.is_relative_to("/opt"):
            pytest.skip("/opt cannot be written here")
        for name, mode in {"key": 0o600, "program": 0o700, "open": 0o644}.items():
            (folder / name).write_text("x")
            (folder / name).chmod(mode)
        assert [path for path in closed_programs(()) if path.startswith(str(folder))] == [f"{folder}/key"]
        assert [path for path in closed_programs([str(folder)]) if path.startswith(str(folder))] == []
