"""A command in the background swaps a folder for a link while file tools use it: nothing outside is touched."""

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from ra.system.files import hold_folder, remove_file, stable_path
from ra.tools.files import open_regular, replace_file
from ra.tools.policy.paths import Project, one_answer
from ra.tools.tool import Mistake
from tests.tools.kit import Kit, words
from tests.tools.world import PYTHON, outside_tmp

FLIP = """
import ctypes, os
os.makedirs("d", exist_ok=True)
open("d/config", "w").write("inner")
os.symlink({target!r}, "e")
while True:  # renameat2 with RENAME_EXCHANGE
    ctypes.CDLL(None).syscall({number}, -100, b"d", -100, b"e", 2)
"""
NUMBER = {"x86_64": 316, "aarch64": 276}.get(os.uname().machine)


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.skipif(not shutil.which("bwrap") or NUMBER is None, reason="needs bubblewrap, and a known processor")
def test_no_file_tool_follows_a_link_that_is_swapped_in_meanwhile() -> None:
    async def go(base: Path) -> tuple[str, list[str]]:
        kit = Kit(base / "project")
        (kit.root / "flip.py").write_text(FLIP.format(target=str(base / "home/.ssh"), number=NUMBER))
        await kit.run("Bash", command=f"{PYTHON} flip.py", background=True)
        while not os.path.lexists(kit.root / "e"):
            await asyncio.sleep(0.01)
        said = []
        for number in range(150):
            await kit.run("Write", path=f"d/new{number}", content="planted")
            await kit.run("Edit", path="d/config", old_string="outer", new_string="planted")
            said += [words(await kit.run("Read", path="d/config")), words(await kit.run("LS", path="d"))]
            said.append(words(await kit.run("Grep", pattern="outer", path="d" if number % 2 else ".")))
        await kit.box.close()
        return "\n".join(said), names_in(base / "home/.ssh")

    with outside_tmp() as base:
        for folder in ("project", "home/.ssh"):
            (base / folder).mkdir(parents=True)
        (base / "home/.ssh/config").write_text("outer secret")
        (base / "home/.ssh/id_ed25519").write_text("")
        said, there = asyncio.run(go(base))
        assert there == ["config", "id_ed25519"]
        assert (base / "home/.ssh/config").read_text() == "outer secret"
    assert "outer secret" not in said
    assert "id_ed25519" not in said


@pytest.fixture
def swapped(tmp_path: Path) -> Path:
    """`d` was a folder when it was judged, and is a link now."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/file").write_text("secret")
    (tmp_path / "d").symlink_to("outside")
    return tmp_path


def test_a_link_on_the_way_is_not_followed(swapped: Path) -> None:
    path = str(swapped / "d/file")
    with pytest.raises(Mistake):
        open_regular(path)
    with pytest.raises(Mistake):
        replace_file(path, b"new")
    with pytest.raises(Mistake):
        replace_file(str(swapped / "d/deep/er"), b"new")
    with pytest.raises(OSError, match="Not a directory"):
        remove_file(path)
    (swapped / "link").symlink_to("outside/file")
    with pytest.raises(Mistake, match="a link that was put there meanwhile"):
        replace_file(str(swapped / "link"), b"new")
    assert names_in(swapped / "outside") == ["file"]
    assert (swapped / "outside/file").read_text() == "secret"


def test_a_folder_that_is_held_stays_the_same_one(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with hold_folder(str(tmp_path / "a")) as handle, stable_path(str(tmp_path / "a")) as name:
        (tmp_path / "a").rename(tmp_path / "old")
        (tmp_path / "a").symlink_to("b")
        os.close(os.open("new", os.O_CREAT | os.O_WRONLY, dir_fd=handle))
        assert names_in(Path(name)) == ["new"]
    assert names_in(tmp_path / "b") == []


def test_during_one_call_a_path_leads_to_one_place(tmp_path: Path) -> None:
    place = Project(str(tmp_path), str(tmp_path))
    (tmp_path / "d").mkdir()
    with one_answer():
        judged = place.resolve("d")
        (tmp_path / "d").rmdir()
        (tmp_path / "d").symlink_to("/etc")
        assert place.resolve("d") == judged == str(tmp_path / "d")
    assert place.resolve("d") == "/etc"
