"""A worktree: commits go to a repository outside the project, and nothing else of it can be changed."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ra.tools.policy.paths import Project
from ra.tools.sandbox import bubblewrap
from ra.tools.sandbox.box import Box, Host
from ra.tools.sandbox.guard import SET_ASIDE
from ra.tools.sandbox.layout import worktree
from tests.tools.world import outside_tmp

pytestmark = pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is not installed")


def git(folder: Path, *args: str) -> str:
    done = subprocess.run(["git", "-C", folder, *args], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def tree() -> Iterator[Path]:
    with outside_tmp() as base:
        main = base / "main"
        git(base, "init", "-q", "-b", "main", str(main))
        git(main, "config", "user.name", "a")
        git(main, "config", "user.email", "a@b")
        git(main, "commit", "-q", "--allow-empty", "-m", "zero")
        git(main, "worktree", "add", "-q", str(base / "tree"))
        yield base / "tree"


@pytest.fixture
def box(tree: Path) -> Iterator[Box]:
    found = bubblewrap.find(Project(str(tree), str(tree)), Host())
    assert found
    yield found
    found.close()


def run(box: Box, tree: Path, command: str) -> str:
    launch = box.launch(["bash", "--norc", "-c", command], str(tree), git=True)
    env = {"PATH": os.environ["PATH"], "HOME": str(tree), **launch.env}
    done = subprocess.run(launch.argv, pass_fds=launch.fds, cwd=tree, env=env, capture_output=True, text=True)
    launch.finish()
    return done.stdout + done.stderr


def test_a_commit_from_a_worktree_works(tree: Path, box: Box) -> None:
    said = run(box, tree, "echo x > a; git add a && git commit -qm one && git switch -qc other && git status --short")
    assert said == ""
    assert git(tree, "log", "--format=%s", "other") == "one\nzero"


@pytest.mark.parametrize(
    "attempt",
    [
        "echo x > {common}/hooks/pre-commit",
        "echo x >> {common}/config; git config core.pager x",
        "mv {common}/hooks {common}/old; mv {common} {common}2",
        "echo /x > {own}/commondir; rm {own}/commondir; mv {own} {own}2",
        "echo '[core]' > {own}/config.worktree",
        "mkdir {common}/worktrees/evil {common}/modules",
        "echo x > {common}/../new",
        "echo 'gitdir: /x' > .git; rm .git",
    ],
)
def test_what_git_obeys_stays_as_it_is(tree: Path, box: Box, attempt: str) -> None:
    common = tree.parent / "main/.git"
    before = obeyed(common)
    run(box, tree, attempt.format(common=common, own=common / "worktrees/tree"))
    assert obeyed(common) == before
    assert (tree / ".git").read_text() == f"gitdir: {common}/worktrees/tree\n"


def obeyed(common: Path) -> dict[str, bytes]:
    files = [path for path in common.parent.rglob("*") if path.is_file() and path.suffix != SET_ASIDE]
    return {str(path): path.read_bytes() for path in files if not {"objects", "refs", "logs"} & set(path.parts)}


def test_only_a_repository_that_knows_the_worktree_is_opened(tree: Path) -> None:
    common = tree.parent / "main/.git"
    known = worktree(str(tree))
    assert known
    assert known.common == str(common)
    fake = tree.parent / "fake"
    fake.mkdir()
    (fake / ".git").write_text(f"gitdir: {common}/worktrees/tree\n")
    assert worktree(str(fake)) is None
    (fake / ".git").write_text(f"gitdir: {common}\n")
    assert worktree(str(fake)) is None
    assert worktree(str(common.parent)) is None


def test_an_object_with_another_hard_link_is_read_only(tree: Path) -> None:
    (tree / "a").write_text("x")
    git(tree, "add", "a")
    loose = next(path for path in (tree.parent / "main/.git/objects").rglob("*") if path.is_file())
    os.link(loose, tree.parent / "twin")
    before = loose.read_bytes()
    box = bubblewrap.find(Project(str(tree), str(tree)), Host())
    assert box
    run(box, tree, f"chmod +w {loose}; echo x > {loose}; rm -f {loose}")
    box.close()
    assert (tree.parent / "twin").read_bytes() == before
