"""With the user's consent a command writes the repository; what it leaves there runs nothing when the user comes."""

# A table is read by the line.
# ruff: noqa: E501

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ra.core.messages import ToolCall
from ra.tools.policy.paths import Project
from ra.tools.policy.permissions import Allow, Deny, decide, rules_from
from ra.tools.sandbox import bubblewrap
from ra.tools.sandbox.box import Host
from ra.tools.sandbox.disarm import is_repository
from ra.tools.settings import RuleSettings

pytestmark = pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is not installed")

EVIL = "printf '[core]\\nrepositoryformatversion=0\\nfsmonitor={run}\\n'"
COMMON = f"mkdir -p C/objects C/refs; {EVIL} > C/config;"
PLANTED = {
    "a repository whose settings lie elsewhere": f"{COMMON} mkdir -p d G; cp .git/HEAD G/; echo ../C > G/commondir; echo 'gitdir: ../G' > d/.git",
    "a gitlink to such a one": f"{COMMON} mkdir -p d G; cp .git/HEAD G/; echo ../C > G/commondir; echo 'gitdir: ../G' > d/.git; git update-index --add --cacheinfo 160000,4b825dc642cb6eb9a060e54bf8d69288fbee4904,d",
    "such a one in the repository": f"{COMMON} mkdir -p d .git/x; cp .git/HEAD .git/x/; echo ../../C > .git/x/commondir; echo 'gitdir: ../.git/x' > d/.git",
    "a worktree that was led away": f"git worktree add -q d; {COMMON} echo ../../../C > .git/worktrees/d/commondir",
    "a worktree of nothing": f"{COMMON} mkdir -p d .git/worktrees/d; cp .git/HEAD .git/worktrees/d/; echo ../../../C > .git/worktrees/d/commondir; echo 'gitdir: ../.git/worktrees/d' > d/.git",
    "a submodule": f"mkdir -p d; git init -q --bare .git/modules/d; {EVIL} > .git/modules/d/config; echo 'gitdir: ../.git/modules/d' > d/.git",
    "the project as a bare repository": f"rm .git/HEAD; mkdir objects refs; echo 'ref: refs/heads/main' > HEAD; {EVIL} > config",
    "settings behind a link": f"git init -q e; rm e/.git/config; ln -s ../../c e/.git/config; {EVIL} > c",
    "settings for all worktrees": f"{EVIL} > .git/config.worktree; {COMMON} echo ../C > .git/commondir",
    "a pointer to the private home": f"git init -q ~/e; {EVIL} >> ~/e/.git/config; mkdir d; echo gitdir: {{home}}/e/.git > d/.git; ln -s {{home}}/e/.git sub/.git",
    "the plan of a rebase": "git commit -q --allow-empty -m y; GIT_SEQUENCE_EDITOR='printf \"break\\nexec {run}\\nx {run}\\n\" >' git rebase -qi HEAD~1",
    "a merge strategy that is a program": "mkdir -p git-merge-x .git/rebase-merge .git/sequencer; cp {run} git-merge-x/y; echo x/y > .git/rebase-merge/strategy; printf '[options]\\nstrategy = x/y\\n' > .git/sequencer/opts",
    "a log that is a link": "rm -rf .git/logs; mkdir .git/logs; ln -s {outside} .git/logs/HEAD; ln -sf {outside} .git/COMMIT_EDITMSG; ln -sf {outside} .git/ORIG_HEAD",
    "a folder that is a link": "rm -rf .git/info .git/objects/pack; ln -s {base}/out .git/info; ln -s {base}/out .git/objects/pack; ln -s {base}/out .git/objects/ab",
    "names that git does not write": "mkdir -p .git/remotes .git/branches; echo 'URL: ext::{run}' > .git/remotes/origin; echo x > .git/whatever",
}  # fmt: skip
USER = (
    ("status", "-s"),
    ("diff",),
    ("commit", "-q", "--allow-empty", "-m", "u"),
    ("rebase", "--continue"),
    ("gc", "-q"),
)


class Scene:
    def __init__(self, base: Path) -> None:
        self.base = base
        self.project, self.home = base / "project", base / "box-home"
        self.outside, self.ran = base / "outside", base / "ran"
        for folder in (self.project / "sub", base / "home", base / "out"):
            folder.mkdir(parents=True, exist_ok=True)
        self.outside.write_text("untouched")
        self.run_me = base / "run.sh"
        self.run_me.write_text(f"#!/bin/sh\necho ran >> {self.ran}\n")
        self.run_me.chmod(0o755)
        self.user("init", "-q", "-b", "main")
        self.user("commit", "-q", "--allow-empty", "-m", "x")
        place = Project(str(self.project), str(self.project), str(base / "home"))
        box = bubblewrap.find(place, Host(box_home=str(self.home)))
        assert box
        self.box = box

    def command(self, command: str) -> str:
        """In the box, with the user's consent for git."""
        launch = self.box.launch(["bash", "--norc", "-c", command], str(self.project), git=True)
        env = {**ENV, **launch.env}
        done = subprocess.run(launch.argv, pass_fds=launch.fds, env=env, capture_output=True, text=True, timeout=60)
        for descriptor in launch.fds:
            os.close(descriptor)
        return "\n".join([done.stdout, done.stderr, *launch.finish()])

    def user(self, *words: str, folder: str = ".") -> "subprocess.CompletedProcess[str]":
        """Outside, by the user."""
        argv = ["git", "-c", "gc.auto=0", *words]
        return subprocess.run(argv, cwd=self.project / folder, env=ENV, capture_output=True, text=True, check=False)


ENV = {"PATH": os.defpath, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_EDITOR": "true", "HOME": "/nonexistent"} | {
    f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
}


@pytest.mark.parametrize("name", PLANTED)
def test_what_a_command_leaves_in_a_repository_runs_nothing(tmp_path: Path, name: str) -> None:
    scene = Scene(tmp_path)
    where = {"{run}": scene.run_me, "{outside}": scene.outside, "{base}": tmp_path, "{home}": scene.home}
    command = PLANTED[name]
    for word, path in where.items():
        command = command.replace(word, str(path))
    output = scene.command(command)
    for folder in (".", "d", "e", "sub", "G", "C", ".git/modules.set-aside/d", ".git/x.set-aside"):
        if (scene.project / folder).is_dir():
            for words in USER:
                scene.user(*words, folder=folder)
    scene.box.close()
    assert not scene.ran.exists(), output
    assert (scene.outside.read_text(), list((tmp_path / "out").iterdir())) == ("untouched", []), output


def test_what_git_itself_writes_stays(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    before = scene.user("config", "--list", "--local").stdout
    output = scene.command(
        "set -e; echo a > a; git add a; git commit -qm a; git worktree add -q d; git tag t; git stash -q || true; "
        "git switch -q -c other; echo b > b; git add b; git commit -qm b; git switch -q main; git merge -q --no-edit other; "
        "GIT_SEQUENCE_EDITOR='printf \"break\\npick $(git rev-parse HEAD)\\n\" >' git rebase -qi HEAD~1; git notes add -m n; git gc -q"
    )
    assert scene.user("config", "--list", "--local").stdout == before
    assert scene.user("log", "--format=%s", "--all").stdout.count("b\n") == 1, output
    assert scene.user("status", "-s", folder="d").returncode == 0, output
    assert (scene.project / ".git/rebase-merge/git-rebase-todo").read_text().startswith("pick"), output
    assert list((scene.project / ".git").glob("**/*.set-aside*")) == [], output
    scene.box.close()


def test_the_result_says_what_git_did_not_do(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home/.gitconfig").write_text("[commit]\ngpgsign = true\n[core]\nhooksPath = ~/hooks\n")
    scene = Scene(tmp_path)
    said = "In the sandbox commits are not signed and the hooks of your core.hooksPath do not run. Tell the user."
    assert scene.command("git commit -q --allow-empty -m y").strip() == said
    assert scene.command("git tag t").strip() == ""
    scene.user("config", "commit.gpgsign", "false")
    assert "not signed" not in scene.command("git commit -q --allow-empty -m z")
    scene.box.close()


def test_the_repositorys_own_hooks_run_in_the_box(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    hook = scene.project / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\necho checked; echo x > {scene.outside}\n")
    hook.chmod(0o755)
    assert "checked" in scene.command("git commit --allow-empty -m y")
    assert scene.outside.read_text() == "untouched"
    scene.box.close()


def test_a_line_of_the_users_own_rebase_stays(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    plan = scene.project / ".git/rebase-merge/git-rebase-todo"
    plan.parent.mkdir()
    plan.write_text("exec make test\nexec make lint\n")
    scene.command(f"sed -i '1d' {plan}; echo 'exec ./x' >> {plan}")
    assert plan.read_text() == "exec make lint\n"
    scene.box.close()


@pytest.mark.parametrize(
    ("names", "answer"),
    [
        (("HEAD", "objects", "refs"), True),
        (("objects", "refs"), True),
        (("HEAD", "commondir"), True),
        (("HEAD", "src"), False),
    ],
)
def test_what_git_could_take_for_a_repository(names: tuple[str, ...], answer: bool) -> None:
    assert is_repository(names) is answer


def test_a_background_job_never_gets_the_repository(tmp_path: Path) -> None:
    place = Project(str(tmp_path), str(tmp_path), boxed=True)
    rules = rules_from([RuleSettings(allow="Bash(git commit:*)")])
    commit = {"command": "git commit -m x"}
    assert decide(ToolCall("1", "Bash", commit), rules, place) == Allow(
        "the rule allow Bash(git commit:*)", network=True, git=True
    )
    assert isinstance(decide(ToolCall("1", "Bash", {**commit, "background": True}), rules, place), Deny)
