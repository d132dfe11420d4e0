"""`@path`: nothing from outside, no hanging, no flood, nothing that git ignores."""

import os
import subprocess
import time
import tracemalloc
from pathlib import Path

import pytest

from ra.core.messages import Text
from ra.resolvers.expand import Reference
from ra.resolvers.file_search import find
from ra.resolvers.files import MAX_BYTES
from tests.resolvers.prompts import names, refused, run

# Outside, and what is no plain file


@pytest.mark.parametrize(
    "ref", ["../outside.txt", "{abs}/outside.txt", "~/outside.txt", "../*.txt", "{abs}/", "..", "~"]
)
def test_nothing_outside_the_project_is_read_without_the_users_word(
    ref: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = root.parent
    monkeypatch.setenv("HOME", str(outside))
    (outside / "outside.txt").write_text("secret")
    assert "outside the project" in refused("@" + ref.format(abs=outside), root)


def test_the_user_is_asked_about_what_lies_outside(root: Path) -> None:
    (root.parent / "outside.txt").write_text("agreed\n")
    asked: list[Path] = []

    async def agree(path: Path) -> bool:
        asked.append(path)
        return True

    expansion = run("@../outside.txt", root, ask=agree)
    assert asked == [root.parent / "outside.txt"]
    assert expansion.blocks == (Text(f'<file path="{root.parent}/outside.txt">\nagreed\n</file>'),)

    async def disagree(path: Path) -> bool:
        return False

    assert run("@../outside.txt", root, ask=disagree).blocks == ()


def test_from_a_subdirectory_the_whole_project_is_inside(root: Path) -> None:
    expansion = run("@../README.md", root, cwd=root / "src")
    assert expansion.references == (Reference("@../README.md", "file", ("README.md",)),)


@pytest.mark.parametrize("ref", ["link.txt", "folder/outside.txt", "chain", "folder/"])
def test_a_link_that_leads_out_is_refused_even_when_one_could_ask(ref: str, root: Path) -> None:
    (root.parent / "outside.txt").write_text("secret")
    (root / "link.txt").symlink_to("../outside.txt")
    (root / "folder").symlink_to("..")
    (root / "chain").symlink_to("link.txt")

    async def agree(path: Path) -> bool:
        raise AssertionError("asked")

    expansion = run(f"@{ref}", root, ask=agree)
    assert expansion.blocks == ()
    assert "a link that leads out of the project" in expansion.warnings[0]


def test_links_out_of_the_project_are_left_out_of_globs_and_links_inside_are_followed(root: Path) -> None:
    (root.parent / "outside.ts").write_text("secret")
    (root / "src" / "utils" / "out.ts").symlink_to(root.parent / "outside.ts")
    (root / "src" / "utils" / "in.ts").symlink_to("a.ts")
    (root / "src" / "loop").symlink_to("..")
    expansion = run("@src/utils/*.ts", root)
    assert expansion.references[0].names == ("src/utils/a.ts", "src/utils/b.ts", "src/utils/in.ts")
    assert expansion.warnings == ("@src/utils/*.ts: 3 files attached; 1 link leads out of the project.",)
    assert "secret" not in str(expansion.blocks)


def test_a_project_reached_through_a_link_is_still_inside(root: Path) -> None:
    (root.parent / "alias").symlink_to(root)
    alias = root.parent / "alias"
    assert run("@README.md", alias, cwd=alias).references[0].names == ("README.md",)
    assert run(f"@{alias}/README.md", root).references[0].names == (f"{alias}/README.md",)


def test_fifos_devices_sockets_and_binaries_are_refused_with_a_reason_and_no_delay(root: Path) -> None:
    os.mkfifo(root / "fifo")
    (root / "program.bin").write_bytes(b"\x7fELF\0\0")
    (root / "noise.bin").write_bytes(bytes(range(1, 32)) * 10)
    assert refused("@fifo", root) == "@fifo: fifo is a named pipe, not a file; not attached."
    assert refused("@program.bin", root) == "@program.bin: program.bin is binary; not attached."
    assert "is binary" in refused("@noise.bin", root)
    assert "outside the project" in refused("@/dev/zero", root)

    async def agree(path: Path) -> bool:
        return True

    assert run("@/dev/zero", root, ask=agree).warnings == (
        "@/dev/zero: /dev/zero is a device, not a file; not attached.",
    )
    assert run("@fifo @program.bin", root, ask=agree).blocks == ()


def test_an_unreadable_file_is_refused_with_its_reason(root: Path) -> None:
    (root / "loop").symlink_to("loop")
    assert "cannot be read" in refused("@loop", root)
    (root / "dangling").symlink_to("nowhere")
    assert refused("@dangling", root) == "@dangling: dangling cannot be read: No such file or directory; not attached."


# Limits


def test_a_long_file_is_cut_at_a_line_and_says_so(root: Path) -> None:
    (root / "long.log").write_text("0123456789abcde\n" * 100_000)
    expansion = run("@long.log", root)
    (block,) = expansion.blocks
    assert isinstance(block, Text)
    assert len(block.text) < MAX_BYTES + 300
    assert expansion.warnings == ("@long.log: the first 400000 of 1600000 bytes.",)
    assert block.text.endswith("abcde\n\n[… the first 400000 of 1600000 bytes]\n</file>")


def test_a_file_of_two_gigabytes_takes_neither_time_nor_memory(root: Path) -> None:
    with (root / "huge.log").open("wb") as file:
        file.write(b"first line\n" * 100_000)
        file.truncate(2 << 30)
    tracemalloc.start()
    began = time.process_time()
    whole = run("@huge.log", root)
    some = run("@huge.log:5-6", root)
    far = run("@huge.log:2000000", root)
    glob = run("@*.log", root)
    assert time.process_time() - began < 8
    assert tracemalloc.get_traced_memory()[1] < 20_000_000
    tracemalloc.stop()
    assert whole.warnings == ("@huge.log: the first 400000 of 2147483648 bytes.",)
    assert some.blocks == (Text('<file path="huge.log" lines="5-6">\nfirst line\nfirst line\n</file>'),)
    assert far.blocks == ()
    assert glob.references[0].names == ("huge.log",)


def test_no_more_than_200_files_and_the_rest_is_told(root: Path) -> None:
    (root / "many").mkdir()
    for n in range(250):
        (root / "many" / f"{n:03}.txt").write_text("x\n")
    expansion = run("@many/", root)
    assert expansion.references[0].names == tuple(f"many/{n:03}.txt" for n in range(200))
    left = "50 left out over the limit of 200 files (many/200.txt, many/201.txt, many/202.txt, …)"
    told = f"@many/: 200 files attached; {left}."
    assert expansion.warnings == (told,)
    assert expansion.blocks[-1] == Text(f"[{told}]")


def test_no_more_than_400_kilobytes_and_smaller_files_still_get_in(root: Path) -> None:
    (root / "big").mkdir()
    for name, size in (("a", 300_000), ("b", 200_000), ("c", 90_000), ("d", 20_000)):
        (root / "big" / name).write_text("x" * (size - 1) + "\n")
    expansion = run("@big/*", root)
    assert expansion.references[0].names == ("big/a", "big/c")
    assert expansion.warnings == ("@big/*: 2 files attached; 2 left out over the limit of 400 KB (big/b, big/d).",)


def test_binaries_in_a_directory_are_left_out_and_told(root: Path) -> None:
    (root / "mix").mkdir()
    (root / "mix" / "a.txt").write_text("a\n")
    (root / "mix" / "b.bin").write_bytes(b"\0")
    os.mkfifo(root / "mix" / "c")
    assert run("@mix/", root).warnings == ("@mix/: 1 file attached; 1 refused (mix/b.bin is binary).",)


def test_many_thousands_of_files_are_answered_in_a_second_or_two(root: Path) -> None:
    (root / ".gitignore").write_text("*.o\n*.log\n/dist/\n")
    for folder in range(10):
        (root / "lots" / str(folder)).mkdir(parents=True)
        for n in range(1000):
            os.close(os.open(root / "lots" / str(folder) / f"{n}.txt", os.O_CREAT | os.O_WRONLY))
    for pattern in ("lots/**/*.txt", "lots/**/{1,2}*/**/../**", "lots/"):
        began = time.process_time()
        expansion = run(f"@{pattern}", root)
        assert time.process_time() - began < 2
        assert len(expansion.references) == (".." not in pattern)
        assert "9800 left out" in str(expansion.warnings) or ".." in pattern


def test_a_search_that_takes_too_long_is_given_up_and_says_so(root: Path) -> None:
    for n in range(300):
        (root / f"{n}.txt").write_text("x\n")
    assert not find("**/*.txt", cwd=root, root=root, max_seconds=0).complete
    assert find("**/*.txt", cwd=root, root=root).complete


# Ignore rules


def test_gits_ignore_rules_apply_to_globs_and_directories_but_not_to_named_files(root: Path) -> None:
    (root / ".gitignore").write_text("*.log\n!keep.log\n/build/\nnode_modules\n")
    (root / ".git" / "info" / "exclude").write_text("private.txt\n")
    for name in ("x.log", "keep.log", "build/out.txt", "sub/node_modules/dep.txt", "private.txt", "sub/build/ok.txt"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x\n")
    (root / "sub" / ".gitignore").write_text("*.tmp\n!x.log\n")
    (root / "sub" / "a.tmp").write_text("x\n")
    (root / "sub" / "x.log").write_text("x\n")
    assert names("@**/*.log", root) == ["keep.log", "sub/x.log"]
    assert names("@sub/", root) == ["sub/build/ok.txt", "sub/x.log"]
    assert "private.txt" not in names("@*.txt", root)
    assert names("@x.log @private.txt", root) == ["x.log", "private.txt"]
    assert refused("@sub/*.tmp", root) == "@sub/*.tmp: nothing attached: 1 ignored by git."
    assert [name for name in names("@**", root) if name.startswith(".git")] == []


def test_a_fifo_named_gitignore_does_not_hang(root: Path) -> None:
    os.mkfifo(root / "src" / ".gitignore")
    assert names("@src/utils/*.js", root) == ["src/utils/c.js"]


def test_ignore_rules_agree_with_git(root: Path, tmp_path: Path) -> None:
    work = tmp_path / "real"
    subprocess.run(["git", "init", "-q", str(work)], check=True)
    (work / ".gitignore").write_text("a/**\n!a/keep/\n*.pyc\n/top.txt\ndocs/*.md\n!docs/index.md\n")
    for name in (
        "a/x.txt",
        "a/keep/y.txt",
        "b/m.pyc",
        "b/top.txt",
        "top.txt",
        "docs/a.md",
        "docs/index.md",
        "docs/s/b.md",
    ):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text("x\n")
    command = ["git", "-C", str(work), "ls-files", "--others", "--exclude-standard"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert names("@**", work) == sorted(name for name in listed if not name.startswith("."))
