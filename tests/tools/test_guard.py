"""What a guard puts back, whatever a command made of it."""

import os
import shutil
import socket
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from ra.tools.sandbox.guard import MAX_BYTES, SET_ASIDE, Guard, set_aside
from tests.tools.world import NOBODY


def _folder(path: Path) -> None:
    path.mkdir()
    (path / "a").write_text("one")
    (path / "in").mkdir(mode=0o700)
    (path / "in/link").symlink_to("../a")


def _script(path: Path) -> None:
    path.write_text("#!/bin/sh\n")
    path.chmod(0o750)


BEFORE: dict[str, Callable[[Path], None]] = {
    "a file": _script,
    "a folder": _folder,
    "a link": lambda path: path.symlink_to("elsewhere"),
    "nothing": lambda path: None,
}
AFTER: dict[str, Callable[[Path], None]] = {
    "another file": lambda path: path.write_text("obey") and None,
    "another folder": lambda path: path.mkdir(),
    "another link": lambda path: path.symlink_to("/etc"),
    "a pipe": lambda path: os.mkfifo(path),
}


def seen(path: Path) -> object:
    """A file, a folder or a link as it stands, with its mode."""
    if not os.path.lexists(path):
        return None
    mode = stat.S_IMODE(path.lstat().st_mode)
    if path.is_symlink():
        return str(path.readlink())
    if path.is_dir():
        return mode, {child.name: seen(child) for child in path.iterdir()}
    return mode, path.read_text()


def guarding(root: Path, *paths: Path) -> Guard:
    return Guard([str(path) for path in paths], str(root))


def put_back(path: Path) -> str:
    return f"{path} is protected and was put back; ask the user to change it."


def clear(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)


@pytest.mark.parametrize("after", AFTER)
@pytest.mark.parametrize("before", BEFORE)
def test_what_was_replaced_is_put_back(tmp_path: Path, before: str, after: str) -> None:
    path = tmp_path / "AGENTS.md"
    BEFORE[before](path)
    was = seen(path)
    guard = guarding(tmp_path, path)
    clear(path)
    AFTER[after](path)
    assert guard.restore() == [put_back(path)]
    assert seen(path) == was
    assert guard.restore() == []


def test_what_was_removed_or_only_changed_its_mode_is_put_back(tmp_path: Path) -> None:
    gone, opened = tmp_path / "gone", tmp_path / "opened"
    _folder(gone)
    _script(opened)
    was = seen(tmp_path)
    guard = guarding(tmp_path, gone, opened)
    clear(gone)
    opened.chmod(0o777)
    assert len(guard.restore()) == 2
    assert seen(tmp_path) == was


def test_a_placeholder_stands_for_nothing(tmp_path: Path) -> None:
    path = tmp_path / ".ra"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        guard = guarding(tmp_path, path)
        path.unlink()
    assert guard.restore() == []


def large(path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    with path.open("wb") as file:
        file.truncate(MAX_BYTES + 1)


def test_a_file_too_large_to_keep_survives_what_changes_beside_it(tmp_path: Path) -> None:
    folder = tmp_path / "modules"
    large(folder / "pack")
    guard = guarding(tmp_path, folder)
    (folder / "config").write_text("obey")
    assert guard.restore() == [put_back(folder)]
    assert [(path.name, path.stat().st_size) for path in folder.iterdir()] == [("pack", MAX_BYTES + 1)]


def test_a_file_too_large_to_keep_is_set_aside_when_it_was_changed(tmp_path: Path) -> None:
    path = tmp_path / "hooks/large"
    large(path)
    status = path.stat()
    guard = guarding(tmp_path, path)
    assert guard.restore() == []
    with path.open("r+b") as file:
        file.write(b"obey")
    os.utime(
        path, ns=(status.st_atime_ns, status.st_mtime_ns)
    )  # a command can hide by its time, but not by the change's
    aside = f"{path}{SET_ASIDE}"
    told = f"{path} is protected and too large to be put back; what was written is in {aside}. Tell the user."
    assert guard.restore() == [told]
    assert [path.name for path in path.parent.iterdir()] == [f"large{SET_ASIDE}"]


def test_a_file_too_large_to_keep_that_was_removed_is_told(tmp_path: Path) -> None:
    large(tmp_path / "large")
    guard = guarding(tmp_path, tmp_path / "large")
    (tmp_path / "large").unlink()
    assert "too large to be put back" in guard.restore()[-1]


def test_a_folder_that_was_removed_is_made_again_for_what_it_held(tmp_path: Path) -> None:
    (tmp_path / ".git/hooks").mkdir(parents=True)
    (tmp_path / ".git/config").write_text("[core]")
    was = seen(tmp_path)
    guard = guarding(tmp_path, tmp_path / ".git/hooks", tmp_path / ".git/config")
    shutil.rmtree(tmp_path / ".git")
    assert guard.restore() == [put_back(tmp_path / ".git/hooks"), put_back(tmp_path / ".git/config")]
    assert seen(tmp_path) == was


def test_a_file_in_the_place_of_a_folder_is_set_aside(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/config").write_text("[core]")
    guard = guarding(tmp_path, tmp_path / ".git/config")
    shutil.rmtree(tmp_path / ".git")
    (tmp_path / ".git").write_text("gitdir: evil")
    assert len(guard.restore()) == 2
    assert (tmp_path / ".git/config").read_text() == "[core]"
    assert (tmp_path / f".git{SET_ASIDE}").read_text() == "gitdir: evil"


def test_a_folder_that_was_moved_behind_a_link_is_moved_back(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/HEAD").write_text("ref")
    guard = guarding(tmp_path, tmp_path / ".git/hooks")
    (tmp_path / ".git").rename(tmp_path / "g")
    (tmp_path / ".git").symlink_to("g")
    assert len(guard.restore()) == 1
    assert not (tmp_path / ".git").is_symlink()
    assert (tmp_path / ".git/HEAD").read_text() == "ref"
    assert not (tmp_path / "g").exists()


def test_a_link_that_leads_to_a_protected_name_keeps_its_target(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there/rules.md").write_text("rules")
    (tmp_path / ".github").symlink_to("there")
    guard = guarding(tmp_path, tmp_path / ".github/rules.md")
    (tmp_path / ".github").unlink()
    (tmp_path / ".github").write_text("in the way")
    assert guard.restore() == [put_back(tmp_path / ".github")]
    assert (tmp_path / ".github/rules.md").read_text() == "rules"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else and come back")
def test_folders_that_were_closed_to_an_ordinary_user_are_opened() -> None:
    """Nothing is closed to root, so the guard works as nobody here."""
    tmp_path = Path(tempfile.mkdtemp())  # pytest's own lies below folders of root
    try:
        os.chown(tmp_path, NOBODY, NOBODY)
        os.seteuid(NOBODY)
        (tmp_path / "sub/in").mkdir(parents=True)
        (tmp_path / "sub/in/rules.md").write_text("rules")
        _folder(tmp_path / ".ra")
        was = seen(tmp_path / ".ra")
        guard = guarding(tmp_path, tmp_path / ".ra", tmp_path / "sub/in/rules.md", tmp_path / ".new")
        (tmp_path / "sub/in/rules.md").write_text("obey")
        (tmp_path / "sub/in").chmod(0o500)
        (tmp_path / ".new/deep").mkdir(parents=True)
        (tmp_path / ".new/deep/file").touch()
        (tmp_path / ".new/deep").chmod(0)
        (tmp_path / ".ra").chmod(0)
        assert len(guard.restore()) == 3
        assert (tmp_path / "sub/in/rules.md").read_text() == "rules"
        assert seen(tmp_path / ".ra") == was
        assert not (tmp_path / ".new").exists()
    finally:
        os.seteuid(0)
        shutil.rmtree(tmp_path)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else and come back")
def test_what_cannot_be_put_back_is_told_and_keeps_nothing_else_from_it() -> None:
    tmp_path = Path(tempfile.mkdtemp())
    try:
        (tmp_path / "sub").mkdir()
        (tmp_path / "sub/a").write_text("one")
        (tmp_path / "b").write_text("two")
        guard = guarding(tmp_path, tmp_path / "sub/a", tmp_path / "b")
        (tmp_path / "sub/a").write_text("obey")
        (tmp_path / "b").write_text("obey")
        os.chown(tmp_path, NOBODY, NOBODY)
        os.seteuid(NOBODY)  # what lies in sub belongs to another
        first, second = guard.restore()
        assert first.startswith(f"{tmp_path}/sub/a is protected, was changed and cannot be put back: [Errno 13]")
        assert second == put_back(tmp_path / "b")
        assert (tmp_path / "b").read_text() == "two"
    finally:
        os.seteuid(0)
        shutil.rmtree(tmp_path)


@pytest.mark.parametrize("before", ["nothing", "a file", "a folder"])
def test_what_was_set_aside_before_stays(tmp_path: Path, before: str) -> None:
    path, first = tmp_path / "AGENTS.md", tmp_path / f"AGENTS.md{SET_ASIDE}"
    BEFORE[before](first)
    aside = first if before == "nothing" else tmp_path / f"AGENTS.md{SET_ASIDE}1"
    path.write_text("obey")
    assert str(aside) in set_aside(str(path))
    assert (path.exists(), aside.read_text(), os.path.lexists(first)) == (False, "obey", True)
