"""What a box may see and write, and what is found in a project before it is boxed."""

import os
import shutil
import socket
import time
from pathlib import Path

import pytest

from ra.tools.policy.paths import Project
from ra.tools.sandbox import bubblewrap
from ra.tools.sandbox.box import Host
from ra.tools.sandbox.find import find_sandbox
from ra.tools.sandbox.layout import collapse, plan
from ra.tools.sandbox.scan import CHEAP_S, Findings, Scan
from tests.tools.world import CANARY, NOBODY, world


@pytest.fixture
def project(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    (made / "docs").mkdir(parents=True)
    return made


def place(project: Path, **more: object) -> Project:
    return Project(str(project), str(project), str(project.parent / "home"), **more)


def test_instructions_are_protected_by_name_and_by_pattern_but_not_elsewhere(project: Path) -> None:
    (project / "docs/a.rules.md").touch()
    (project / "docs/other.md").touch()
    patterns = ("./NOTES.md", "docs/*.rules.md", "/etc/passwd", "../above.md", ".")
    own = plan(place(project, instructions=patterns), ()).own
    assert {os.path.relpath(path, project) for path in own} == {
        *(".ra", "NOTES.md", "docs/a.rules.md", "ra.yaml", ".git"),
    } | {os.path.relpath(path, project) for path in plan(place(project, instructions=()), ()).own}


def test_what_the_project_itself_runs_is_protected(project: Path) -> None:
    runs = (str(project / "hooks/check.py"), "/usr/bin/true")
    layout = plan(place(project, runs=runs), ())
    assert str(project / "hooks/check.py") in layout.watched  # its folder is not there: nothing can be mounted
    assert "/usr/bin/true" not in (*layout.own, *layout.watched)


OBEYED = ["hooks", "config", "commondir", "config.worktree", "modules"]


def test_of_a_repository_hooks_and_configuration_are_protected(project: Path) -> None:
    (project / ".git/worktrees").mkdir(parents=True)
    layout = plan(place(project), ())
    found = {os.path.relpath(path, project) for path in (*layout.own, *layout.watched)}
    assert {name for name in found if ".git/" in name} == {f".git/{name}" for name in [*OBEYED, "worktrees"]}


def test_the_folder_of_hooks_that_the_configuration_names_is_protected(project: Path) -> None:
    (project / ".git").mkdir()
    (project / ".git/config").write_text('[core]\n\thooksPath = tools/hooks\n\thookspath = "/etc/hooks"\n')
    layout = plan(place(project), ())
    named = {os.path.relpath(path, project) for path in (*layout.own, *layout.watched)}
    assert "tools/hooks" in named
    assert not any(name.startswith("..") for name in named)


def test_a_project_that_is_a_bare_repository_keeps_its_configuration(project: Path) -> None:
    for name in ("objects", "refs"):
        (project / name).mkdir()
    layout = plan(place(project), ())
    named = {os.path.relpath(path, project) for path in (*layout.own, *layout.watched)}
    assert {"hooks", "config", "commondir", "config.worktree", "modules"} <= named


@pytest.mark.parametrize("how", ["a link", "a file"])
def test_a_repository_elsewhere_in_the_project_is_protected_as_well(project: Path, how: str) -> None:
    """As `git init --separate-git-dir` makes it."""
    (project / "store").mkdir()
    if how == "a link":
        (project / ".git").symlink_to("store")
    else:
        (project / ".git").write_text("gitdir: store\n")
    layout = plan(place(project), ())
    assert {str(project / ".git"), *(str(project / "store" / name) for name in OBEYED)} <= {
        *layout.own,
        *layout.watched,
    }


@pytest.mark.parametrize(
    "text", ["gitdir: /elsewhere/.git/worktrees/a\n", "gitdir: ../.git", "gitdir: .", "gitdir:", "x", ""]
)
def test_a_repository_outside_the_project_is_not_of_its_plan(project: Path, text: str) -> None:
    (project / ".git").write_text(text)
    layout = plan(place(project), ())
    assert [path for path in (*layout.own, *layout.watched) if "git" in path and "github" not in path] == [
        f"{project}/.git"
    ]


def test_only_the_topmost_of_hidden_folders_is_named(project: Path) -> None:
    secret = project.parent / "secret"
    (secret / "deep").mkdir(parents=True)
    layout = plan(place(project), (str(secret / "deep"), str(secret), str(project.parent), str(project)))
    assert [path for path in layout.hidden if path.startswith(str(project.parent))] == [str(secret)]


def test_files_that_are_too_many_are_covered_by_their_folders() -> None:
    files = frozenset(f"/p/deps/{folder}/{name}" for folder in "abc" for name in "xyz")
    assert collapse(files, "/p", most=9) == sorted(files)
    assert collapse(files, "/p", most=3) == ["/p/deps/a", "/p/deps/b", "/p/deps/c"]
    assert collapse(files | {"/p/deps/a"}, "/p", most=10) == ["/p/deps/a", *sorted(f for f in files if "/a/" not in f)]
    assert collapse(files, "/p", most=1) == ["/p/deps"]
    assert collapse(frozenset({"/p/x", "/p/y"}), "/p", most=1) == ["/p"]


def test_a_large_project_is_looked_at_anew_only_where_it_changed(project: Path) -> None:
    for number in range(3000):
        (project / f"d{number % 300}").mkdir(exist_ok=True)
        (project / f"d{number % 300}/f{number}").touch()
    scan = Scan(str(project), ("AGENTS.md",))
    began = time.monotonic()
    assert scan.look() == Findings()
    assert time.monotonic() - began > CHEAP_S
    (project / "d7/AGENTS.md").touch()
    shutil.rmtree(project / "d8")
    assert scan.look().guarded == {str(project / "d7/AGENTS.md")}
    assert scan.look().guarded == {str(project / "d7/AGENTS.md")}


def test_a_project_that_is_gone_holds_nothing(project: Path) -> None:
    scan = Scan(str(project), ())
    (project / ".env").touch()
    assert scan.look().secret == {str(project / ".env")}
    shutil.rmtree(project)
    assert scan.look() == Findings()


def test_there_is_no_sandbox_where_none_is_wanted_or_known(project: Path) -> None:
    assert find_sandbox("off", place(project)) is None
    assert find_sandbox("auto", place(project), system="Windows") is None
    found = find_sandbox("auto", place(project), system="Darwin")
    assert (found is not None) == Path("/usr/bin/sandbox-exec").exists()


def test_without_the_program_there_is_no_bubblewrap(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(project))
    assert bubblewrap.find(place(project), Host()) is None


def test_a_bubblewrap_that_does_not_work_is_not_used(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the kernel gives ordinary users no namespaces: it is there, and every form of it fails."""
    program = project.parent / "bin/bwrap"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 'No permissions to create a new namespace' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    assert bubblewrap.find(place(project), Host()) is None
    assert sorted(path.name for path in project.iterdir()) == ["docs"]  # no placeholder is left


def test_what_hook_managers_read_is_guarded_where_they_look_for_it(tmp_path: Path) -> None:
    (tmp_path / "vendor/mise").mkdir(parents=True)
    for name in (".pre-commit-config.yaml", "vendor/lefthook.yml", "vendor/mise/config.toml", "vendor/config.toml"):
        (tmp_path / name).touch()
    guarded = Scan(str(tmp_path), ()).look().guarded
    assert {os.path.relpath(path, tmp_path) for path in guarded} == {
        ".pre-commit-config.yaml",
        "vendor/mise/config.toml",
    }


@pytest.mark.skipif(os.getuid() != 0 or not shutil.which("bwrap"), reason="only root looks into the folders of others")
def test_what_lies_in_a_closed_folder_of_another_user_stops_no_command_of_root() -> None:
    with world(0) as made, socket.socket(socket.AF_UNIX) as service:
        closed = made.base / "closed"
        closed.mkdir(mode=0o700)
        shutil.chown(closed, NOBODY)
        box = bubblewrap.find(made.place(), Host())
        assert box
        (closed / "key").write_text(CANARY)
        service.bind(str(closed / "sock"))
        service.listen()
        assert made.run(box, f"echo hi; cat {closed}/key 2>/dev/null") == "hi\n"
        box.close()
