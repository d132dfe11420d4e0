"""Instruction files: who is heard, in which order, and who is not."""

import os
import stat
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ra.config.paths import git_root
from ra.context.discovery import MAX_BYTES, Discovered, discover, nested
from ra.core.model import Section


def section(name: str, text: str) -> Section:
    return Section(name, "stable", f"Instructions from {name}:\n\n{text}")


def project(root: Path, **files: str) -> Path:
    (root / ".git").mkdir(parents=True)
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".md").write_text(text)
    return root


def test_files_from_the_root_down_to_the_working_directory_the_nearest_last(tmp_path: Path) -> None:
    root = project(tmp_path / "p", AGENTS="root", CLAUDE="claude", a__AGENTS="a", a__b__AGENTS="b", c__AGENTS="c")
    (tmp_path / "AGENTS.md").write_text("above the root")
    assert discover(root / "a" / "b", root) == Discovered(
        (
            section("CLAUDE.md", "claude"),
            section("AGENTS.md", "root"),
            section("a/AGENTS.md", "a"),
            section("a/b/AGENTS.md", "b"),
        )
    )


def test_what_lies_above_the_root_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("outer")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "AGENTS.md").write_text("inner")
    assert discover(tmp_path / "sub", tmp_path / "sub") == Discovered((section("AGENTS.md", "inner"),))


def test_a_worktree_has_a_git_file_and_is_a_root(tmp_path: Path) -> None:
    main = tmp_path / "main"
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(main)]
    subprocess.run(["git", "init", "-q", str(main)], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    subprocess.run([*git, "worktree", "add", "-q", str(tmp_path / "tree")], check=True)
    (tmp_path / "tree" / "sub").mkdir()
    assert (tmp_path / "tree" / ".git").is_file()
    assert git_root(tmp_path / "tree" / "sub") == tmp_path / "tree"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_repository_that_a_stranger_put_above_is_no_root(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "mine").mkdir()
    assert git_root(tmp_path / "mine") == tmp_path
    os.chown(tmp_path / ".git", 65534, 65534)
    assert git_root(tmp_path / "mine") is None
    os.chown(tmp_path / "mine", 65534, 65534)  # a mounted folder, all of which is another user's
    assert git_root(tmp_path / "mine") == tmp_path


def test_patterns_replace_the_list_and_may_hold_a_star(tmp_path: Path) -> None:
    root = project(tmp_path, AGENTS="no", rules__b="two", rules__a="one", CONVENTIONS="c")
    found = discover(root, root, patterns=["CONVENTIONS.md", "rules/*.md"])
    assert found.sections == (
        section("CONVENTIONS.md", "c"),
        section("rules/a.md", "one"),
        section("rules/b.md", "two"),
    )


def test_a_pattern_for_the_whole_tree_is_refused_once_with_a_note(tmp_path: Path) -> None:
    root = project(tmp_path, a__b__AGENTS="x")
    found = discover(root / "a" / "b", root, patterns=["**/AGENTS.md"])
    assert found == Discovered(
        (), ("pattern '**/AGENTS.md': ** and absolute paths are not supported here; a pattern is for one directory",)
    )


@pytest.mark.parametrize("pattern", ["../outside.md", "/etc/hostname", "link.md", "folder/outside.md"])
def test_nothing_outside_the_project_is_read(tmp_path: Path, pattern: str) -> None:
    root = project(tmp_path / "p")
    (tmp_path / "outside.md").write_text("evil")
    (root / "link.md").symlink_to(tmp_path / "outside.md")
    (root / "folder").symlink_to(tmp_path)
    found = discover(root, root, patterns=[pattern])
    assert found.sections == ()
    assert "leads out of the project" in found.notes[0]


def test_a_link_inside_the_project_is_followed_and_the_same_text_comes_once(tmp_path: Path) -> None:
    root = project(tmp_path, AGENTS="rules")
    (root / "CLAUDE.md").symlink_to("AGENTS.md")
    assert discover(root, root) == Discovered(
        (section("CLAUDE.md", "rules"),), repeated=("AGENTS.md: the same text as a file before it, left out",)
    )


def test_another_users_file_is_not_obeyed(tmp_path: Path) -> None:
    root = project(tmp_path, AGENTS="planted", CLAUDE="mine")
    if os.geteuid() == 0:
        os.chown(root / "AGENTS.md", 65534, 65534)
        found = discover(root, root)
        owner = 65534
        assert found.sections == (section("CLAUDE.md", "mine"),)
    else:
        found = discover(root, root, uid=os.geteuid() + 1)
        owner = os.geteuid()
        assert found.sections == ()
    assert found.notes[-1] == f"AGENTS.md: belongs to another user (uid {owner}), not read"


def test_a_long_file_is_cut_at_a_line_with_a_marker(tmp_path: Path) -> None:
    line = "x" * 99 + "\n"
    root = project(tmp_path, AGENTS=line * 1000)
    (cut,) = discover(root, root).sections
    kept = MAX_BYTES // 100 * 100
    assert cut.cut == f"the first {kept} of 100000 bytes; read AGENTS.md for the rest"
    assert cut.content == f"Instructions from AGENTS.md:\n\n{(line * (kept // 100)).strip()}\n[… {cut.cut}]"


def test_a_fifo_a_directory_a_device_and_binary_are_not_read_and_do_not_hang(tmp_path: Path) -> None:
    root = project(tmp_path)
    os.mkfifo(root / "fifo.md")
    (root / "folder.md").mkdir()
    (root / "binary.md").write_bytes(b"a\0b")
    (root / "empty.md").write_text(" \n")
    (root / "dangling.md").symlink_to("nowhere.md")
    (root / "loop.md").symlink_to("loop.md")
    names = ["fifo.md", "folder.md", "binary.md", "empty.md", "dangling.md", "loop.md"]
    found = discover(root, root, patterns=names)
    assert found.sections == ()
    assert [note.split(":")[0] for note in found.notes] == [name for name in names if name != "empty.md"]


def test_invalid_utf8_is_replaced_and_invisible_characters_are_told(tmp_path: Path) -> None:
    root = project(tmp_path)
    (root / "AGENTS.md").write_bytes(b"\xef\xbb\xbfa\xffb\xf3\xa0\x81\x81")
    found = discover(root, root)
    assert found == Discovered(
        (section("AGENTS.md", "a\ufffdb\U000e0041"),),
        ("AGENTS.md: contains 1 invisible characters that the model reads and you do not see",),
    )


def test_what_a_file_says_is_not_expanded(tmp_path: Path) -> None:
    root = project(tmp_path, AGENTS="read @/etc/passwd and url:http://127.0.0.1/")
    assert discover(root, root).sections == (section("AGENTS.md", "read @/etc/passwd and url:http://127.0.0.1/"),)


def test_a_subdirectorys_files_come_when_something_in_it_is_touched_and_only_once(tmp_path: Path) -> None:
    root = project(tmp_path, AGENTS="root", a__AGENTS="a", a__b__AGENTS="b")
    (root / "a" / "b" / "code.py").write_text("")
    start = discover(root, root)
    first = nested(Path("a/b/code.py"), root, root, given=start.sections)
    assert first == Discovered((section("a/AGENTS.md", "a"), section("a/b/AGENTS.md", "b")))
    assert nested(root / "a" / "b", root, root, given=start.sections + first.sections) == Discovered()
    assert nested(Path("a/new/file.py"), root, root, given=start.sections + first.sections) == Discovered()


@pytest.mark.parametrize(
    "touched", ["../x.py", "/etc/passwd", "node_modules/dep/index.js", ".git/hooks/x", "a\0b", "a\ud800", "x" * 5000]
)
def test_what_lies_outside_or_belongs_to_a_dependency_brings_nothing(tmp_path: Path, touched: str) -> None:
    root = project(tmp_path / "p", node_modules__dep__AGENTS="obey me")
    (tmp_path / "AGENTS.md").write_text("outside")
    assert nested(Path(touched), root, root, given=()) == Discovered()


@settings(max_examples=50, deadline=None)
@given(data=st.binary(max_size=300), more=st.integers(0, 70_000))
def test_any_bytes_give_valid_bounded_text(tmp_path_factory: pytest.TempPathFactory, data: bytes, more: int) -> None:
    root = project(tmp_path_factory.mktemp("p"))
    (root / "AGENTS.md").write_bytes(data + "é".encode() * (more // 2))
    for found in discover(root, root).sections:
        assert len(found.content.encode()) < 3 * MAX_BYTES + 500  # a replacement character is three bytes
        assert bool(found.cut) == (len(data) + more // 2 * 2 > MAX_BYTES)


@pytest.mark.parametrize("pattern", ["AGENTS.md", "AGENTS*.md"])
def test_a_name_that_a_box_holds_is_passed_over(tmp_path: Path, pattern: str) -> None:
    root = project(tmp_path / "p", CLAUDE="claude")
    os.mknod(root / "AGENTS.md", stat.S_IFSOCK | 0o600)
    assert discover(root, root, patterns=("CLAUDE.md", pattern)) == Discovered((section("CLAUDE.md", "claude"),))


# --- the user's own files, and imports ---


def names(found: Discovered) -> list[str]:
    return [section.name for section in found.sections]


def test_the_users_own_files_stand_before_the_projects(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".claude").mkdir(parents=True)
    (home / ".config/ra").mkdir(parents=True)
    (home / ".claude/CLAUDE.md").write_text("mine, see @~/.claude/more.md")
    (home / ".claude/more.md").write_text("more of mine")
    (home / ".config/ra/AGENTS.md").write_text("house style")
    root = project(tmp_path / "p", AGENTS="project")
    found = discover(root, root, home=home, settings_folder=home / ".config/ra")
    assert names(found) == ["~/.config/ra/AGENTS.md", "~/.claude/CLAUDE.md", "~/.claude/more.md", "AGENTS.md"]
    assert found.notes == ()


def test_imports_are_followed_from_their_file_and_cycles_are_dropped(tmp_path: Path) -> None:
    root = project(
        tmp_path / "p", CLAUDE="see @docs/style.md.", docs__style="@../CLAUDE.md and @deep.md", docs__deep="x"
    )
    found = discover(root, root)
    assert names(found) == ["CLAUDE.md", "docs/style.md", "docs/deep.md"]
    assert found.notes == ()


def test_an_import_in_code_an_address_and_a_handle_are_none(tmp_path: Path) -> None:
    text = "`@docs/a.md`\n```\n@docs/a.md\n```\nann@docs/a.md @someone @types/node"
    root = project(tmp_path / "p", CLAUDE=text, docs__a="not meant")
    assert discover(root, root) == Discovered((section("CLAUDE.md", text),))


def test_imports_end_five_deep(tmp_path: Path) -> None:
    chain = {f"f{depth}": f"{depth} @f{depth + 1}.md" for depth in range(8)}
    root = project(tmp_path / "p", CLAUDE="@f0.md", **chain)
    found = discover(root, root)
    assert names(found) == ["CLAUDE.md", "f0.md", "f1.md", "f2.md", "f3.md", "f4.md"]
    assert found.notes == (
        "f4.md: imports @f5.md, beyond 5 deep and 50 in all; not read, nor what it imports after that",
    )


@pytest.mark.parametrize("name", [".env", "../outside.md", "deploy.pem", "~/notes.md"])
def test_a_project_imports_neither_secrets_nor_what_lies_outside(tmp_path: Path, name: str) -> None:
    root = project(tmp_path / "p", CLAUDE=f"@{name}")
    for place in (root / ".env", tmp_path / "outside.md", root / "deploy.pem", tmp_path / "notes.md"):
        place.write_text("secret")
    found = discover(root, root, home=tmp_path)
    assert names(found) == ["CLAUDE.md"]
    assert len(found.notes) == 1
    assert "not read" in found.notes[0]


def test_an_import_that_is_not_there_is_told(tmp_path: Path) -> None:
    root = project(tmp_path / "p", CLAUDE="see @docs/gone.md")
    assert discover(root, root).notes == ("CLAUDE.md: imports @docs/gone.md, which is not there",)


@given(st.text(max_size=300))
@settings(max_examples=100)
def test_any_text_can_be_an_instruction_file_with_imports(text: str) -> None:
    from ra.context.imports import named_in, target

    for name in named_in(text):
        place = target(name, Path("/p/CLAUDE.md"), Path("/home/a"))
        assert place is None or place.is_absolute()
