import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from ra.system.process import Launch
from ra.tools.sandbox import bubblewrap
from ra.tools.sandbox.box import Host
from ra.tools.sandbox.guard import SET_ASIDE
from tests.tools.escapes import ALL
from tests.tools.world import World, check_a_repository_beside_its_work, people, world

pytestmark = pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is not installed")


def box_in(made: World) -> bubblewrap.Bubblewrap:
    box = bubblewrap.find(made.place(), Host((str(made.data),)))
    assert box
    if made.uid != os.getuid():
        made.own(box)
    return box


class NoBox:
    name, limits, trouble = "none", (), ""

    def launch(self, argv: list[str], cwd: str) -> Launch:
        return Launch(["env", "-C", cwd, *argv])

    def close(self) -> None: ...


@pytest.mark.parametrize("uid", people())
def test_no_escape_succeeds(uid: int) -> None:
    assert len(ALL) >= 60
    with world(uid) as made:
        box = box_in(made)
        harm = made.first_harm(box, ALL)
        box.close()
    assert harm == {}


CONTROLS = (
    *("a file outside", "ssh key", "tcp through bash", "udp through bash", "unix socket in the project", "a hook"),
    *("instructions that are there", "environment of another process", "a signal to another process"),
    "a hard link that lies in the project",
)


@pytest.mark.parametrize("name", CONTROLS)
def test_the_attempts_would_succeed_without_a_box(name: str) -> None:
    with world(people()[-1]) as made:
        output = made.run(NoBox(), made.filled(ALL[name]))
        assert made.harm(output)


def test_ordinary_work_goes_on_in_the_box() -> None:
    with world(people()[-1]) as made:
        box = box_in(made)
        command = (
            "set -e; echo .env > .gitignore; echo x > new.txt; "
            "mkdir -p src/deep; echo y > src/deep/a; mv new.txt src/; rm src/deep/a; "
            "git add -A; git commit -qm first; git checkout -q -b branch; git log --oneline | wc -l; "
            "echo z > /tmp/note; cat /tmp/note; " + made.filled("{python} -c 'print(6 * 7)'")
        )
        assert made.run(box, command, git=True).split() == ["1", "z", "42"]
        assert made.run(box, "cat /tmp/note").strip() == "z"
        tracked = subprocess.run(
            ["git", "-c", "safe.directory=*", "-C", made.project, "ls-files"], capture_output=True, text=True
        )
        assert "CLAUDE.md" not in tracked.stdout.replace("sub/CLAUDE.md", "")
        assert ".cursorrules" not in tracked.stdout
        box.close()


def test_a_program_in_the_box_can_serve_itself() -> None:
    with world(people()[-1]) as made:
        box = box_in(made)
        code = (
            "import socket, threading; s = socket.create_server(('127.0.0.1', 0)); "
            "threading.Thread(target=lambda: s.accept()[0].send(b'hi')).start(); "
            "print(socket.create_connection(s.getsockname()).recv(9).decode())"
        )
        assert made.run(box, f'{made.filled("{python}")} -c "{code}"').strip() == "hi"
        box.close()


def test_a_program_can_be_debugged_in_the_box() -> None:
    with world(people()[-1]) as made:
        box = box_in(made)
        code = (
            "import ctypes, os; l = ctypes.CDLL(None); child = os.fork(); "
            "os._exit(l.ptrace(0, 0, 0, 0)) if child == 0 else print(os.waitpid(child, 0)[1])"
        )
        assert made.run(box, f'{made.filled("{python}")} -c "{code}"').strip() == "0"
        box.close()


def test_nothing_is_left_behind() -> None:
    with world(people()[-1]) as made:
        before = sorted(path.name for path in made.project.iterdir())
        box = box_in(made)
        made.run(box, "true")
        box.close()
        assert sorted(path.name for path in made.project.iterdir()) == before
        assert not Path(box.private_tmp).exists()


def test_the_box_makes_no_files_in_the_project() -> None:
    with world(os.getuid()) as made:
        before = sorted(path for path in made.project.rglob("*"))
        box = box_in(made)
        launches = [box.launch(["true"], str(made.project)) for _ in range(2)]
        assert sorted(path for path in made.project.rglob("*")) == before
        for launch in launches:
            launch.finish()
            for descriptor in launch.fds:
                os.close(descriptor)
        box.close()


MANY = """
import asyncio, sys
from pathlib import Path
from tests.tools.kit import Kit
kit = Kit(Path(sys.argv[1]))
for _ in range(2):
    assert kit.text("Bash", command="echo hello") == "hello"
"""


def test_twenty_processes_in_one_project_do_not_disturb_each_other(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", MANY, str(tmp_path)]
    running = [subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for _ in range(20)]
    failures = [output for process in running if (output := process.communicate(timeout=120)[0])]
    assert (failures, [process.returncode for process in running]) == ([], [0] * 20)
    assert list(tmp_path.iterdir()) == []


PLANTED = ("CLAUDE.md", ".ra/x", "ra.yaml", ".mcp.json", ".vscode/settings.json", ".envrc", ".gitmodules",
           ".husky/pre-commit", "mise.toml", "GEMINI.md", ".helix/languages.toml", "x.code-workspace")  # fmt: skip


@pytest.mark.parametrize("name", [*PLANTED, *(f"deep/er/{name}" for name in PLANTED)])
def test_what_newly_appears_is_moved_aside_and_never_deleted(name: str) -> None:
    with world(people()[-1]) as made:
        box = box_in(made)
        for text in ("one", "two"):
            made.run(box, f"mkdir -p $(dirname {name}); echo {text} > {name}")
            assert not (made.project / name).exists()
        folder, _, inner = name.removeprefix("deep/er/").partition("/")
        base = made.project / ("deep/er" if name.startswith("deep") else "")
        texts = [(base / (folder + SET_ASIDE + number) / inner).read_text() for number in ("", "1")]
        assert texts == ["one\n", "two\n"]
        box.close()


def test_the_users_own_edits_meanwhile_are_not_touched() -> None:
    with world(os.getuid()) as made:
        box = box_in(made)
        launch = box.launch(["bash", "-c", "echo obey > AGENTS.md; echo obey > sub/CLAUDE.md"], str(made.project))
        subprocess.run(launch.argv, pass_fds=launch.fds, capture_output=True)
        for name in ("AGENTS.md", "sub/CLAUDE.md"):  # as an editor saves: another file takes the name
            (made.project / "new").write_text("by the user")
            (made.project / "new").rename(made.project / name)
        notes = launch.finish()
        assert [note.partition(" is protected and was replaced")[0] for note in notes] == [
            str(made.project / name) for name in ("AGENTS.md", "sub/CLAUDE.md")
        ]
        assert (made.project / "AGENTS.md").read_text() == (made.project / "sub/CLAUDE.md").read_text() == "by the user"
        box.close()


def test_what_one_job_plants_another_does_not_keep() -> None:
    with world(os.getuid()) as made:
        box = box_in(made)
        first = box.launch(["bash", "-c", "mkdir -p new; echo obey > new/AGENTS.md"], str(made.project))
        subprocess.run(first.argv, pass_fds=first.fds)
        second = box.launch(["true"], str(made.project))  # starts while what the first planted is there
        subprocess.run(second.argv, pass_fds=second.fds)
        first.finish()
        second.finish()
        assert not (made.project / "new/AGENTS.md").exists()
        box.close()


def test_where_only_links_lie_the_whole_project_is_read_only() -> None:
    """More hard-linked files than can be mounted over, and all of them at the top."""
    with world(os.getuid()) as made:
        for number in range(200):
            os.link(made.outside / "linked.txt", made.project / f"{number}.txt")
        box = box_in(made)
        made.run(box, "echo x > 7.txt; echo x > new.txt")
        assert made.harm() == []
        assert not (made.project / "new.txt").exists()
        box.close()


def test_a_link_to_a_secret_is_left_and_what_it_leads_to_is_hidden() -> None:
    with world(os.getuid()) as made:
        (made.project / "sub/.env").symlink_to("../.env")
        box = box_in(made)
        assert made.harm(made.run(box, "cat sub/.env .env")) == []
        box.close()


def test_an_empty_file_of_the_user_stays() -> None:
    with world(people()[-1]) as made:
        (made.project / "CLAUDE.md").touch()
        box = box_in(made)
        made.run(box, "echo obey > CLAUDE.md")
        assert (made.project / "CLAUDE.md").read_bytes() == b""
        box.close()


def test_a_protected_name_made_in_a_subfolder_is_set_aside() -> None:
    with world(people()[-1]) as made:
        box = box_in(made)
        launch = box.launch(["bash", "-c", "mkdir -p deep/er; echo obey > deep/er/AGENTS.md"], str(made.project))
        subprocess.run(launch.argv, pass_fds=launch.fds, **made.person())
        (note,) = launch.finish()
        assert "protected name" in note
        assert (made.project / f"deep/er/AGENTS.md{SET_ASIDE}").read_text() == "obey\n"
        assert not (made.project / "deep/er/AGENTS.md").exists()
        box.close()


def test_a_linked_folder_of_ra_is_put_back() -> None:
    with world(people()[-1]) as made:
        (made.project / "state").mkdir()
        (made.project / ".ra").symlink_to("state")
        os.chown(made.project / "state", made.uid, made.uid)
        box = box_in(made)
        made.run(box, "rm -f .ra; mkdir .ra; echo x > .ra/x; echo x > state/x")
        assert (made.project / ".ra").readlink() == Path("state")
        assert list((made.project / "state").iterdir()) == []
        box.close()


def test_instructions_that_are_a_link_keep_their_target() -> None:
    with world(people()[-1]) as made:
        (made.project / "CLAUDE.md").symlink_to("AGENTS.md")
        box = box_in(made)
        made.run(box, "echo obey > CLAUDE.md; rm CLAUDE.md; echo obey > CLAUDE.md")
        assert (made.project / "CLAUDE.md").readlink() == Path("AGENTS.md")
        assert (made.project / "AGENTS.md").read_text() == "rules\n"
        box.close()


EVIL = "git -C {d} config core.fsmonitor ./x; git -C {d} config alias.y '!x'; git -C {d} config user.name me"


@pytest.mark.parametrize("where", [".", "d"])
def test_a_repository_that_a_command_leaves_behind_is_disarmed(where: str) -> None:
    with world(people()[-1]) as made:
        shutil.rmtree(made.project / ".git")
        box = box_in(made)
        hook = f"{where}/.git/hooks/pre-commit"
        made.run(
            box,
            f"git init -q {where}; mkdir -p {where}/.git/hooks; {EVIL.format(d=where)}; "
            f"echo x > {hook}; chmod +x {hook}",
        )
        git = made.project / where / ".git"
        config = (git / "config").read_text()
        assert ("fsmonitor" in config, "alias" in config, "name = me" in config) == (False, False, True)
        assert (made.project / hook).stat().st_mode & 0o111 == 0
        assert "fsmonitor" in (git / f"config{SET_ASIDE}").read_text()
        made.run(box, EVIL.format(d=where))  # from now on it is read-only
        assert (git / "config").read_text() == config
        box.close()


def test_a_bare_repository_is_one_too() -> None:
    with world(people()[-1]) as made:
        box = box_in(made)
        made.run(box, "git init -q --bare bare; git -C bare config core.fsmonitor ./x")
        assert "fsmonitor" not in (made.project / "bare/config").read_text()
        box.close()


def test_git_is_one_boundary() -> None:
    with world(people()[-1]) as made:
        box = box_in(made)
        said = made.run(box, "echo x > a; git add a; echo x > .git/x; git config core.pager ./x; git status --short")
        assert "Read-only file system" in said
        assert not (made.project / ".git/x").exists()
        assert (made.project / ".git/config").read_text() == made.config
        tried = "git add a && git commit -qm one && git switch -qc b; git config core.pager ./x"
        made.run(
            box, f"{tried}; mkdir -p .git/hooks; echo x > .git/hooks/pre-commit; echo x > .git/commondir", git=True
        )
        assert made.run(box, "git log --oneline | wc -l").strip() == "1"
        assert (made.project / ".git/config").read_text() == made.config
        assert not (made.project / ".git/commondir").exists()
        assert not (made.project / ".git/hooks/pre-commit").exists()
        box.close()


def test_a_repository_beside_its_work_gets_no_hooks() -> None:
    check_a_repository_beside_its_work(box_in)


def test_a_submodule_cannot_be_prepared() -> None:
    """A later `git submodule update` would take its configuration and its hooks for its own."""
    with world(people()[-1]) as made:
        box = box_in(made)
        made.run(box, "mkdir -p .git/modules/x/hooks; echo x > .git/modules/x/hooks/post-checkout")
        assert not (made.project / ".git/modules").exists()
        box.close()


def test_many_hard_links_make_their_folder_read_only() -> None:
    with world(people()[-1]) as made:
        (made.project / "deps").mkdir()
        for number in range(200):
            (made.outside / "linked.txt").touch()
            os.link(made.outside / "linked.txt", made.project / f"deps/{number}")
        box = box_in(made)
        made.run(box, "for f in deps/*; do echo x > $f; done; echo x > deps/new; echo fine > other.txt")
        assert (made.outside / "linked.txt").read_text() == "untouched"
        assert (made.project / "other.txt").read_text() == "fine\n"
        box.close()


def test_a_home_directory_is_not_writable_as_a_project() -> None:
    with world(people()[-1]) as made:
        place = made.place()
        place = type(place)(str(made.home), str(made.home), str(made.home))
        box = bubblewrap.find(place, Host())
        assert box
        launch = box.launch(["bash", "-c", "echo x > .bashrc"], str(made.home))
        subprocess.run(launch.argv, pass_fds=launch.fds, capture_output=True, **made.person())
        launch.finish()
        assert not (made.home / ".bashrc").exists()
        box.close()


@pytest.mark.parametrize("uid", people())
def test_the_box_has_no_capabilities(uid: int) -> None:
    with world(uid) as made:
        box = box_in(made)
        lines = made.run(box, "grep Cap /proc/self/status").split()
        assert lines[1::2] == ["0" * 16] * 5
        box.close()


def test_nothing_can_be_put_into_a_folder_that_ra_runs_from() -> None:
    with world(os.getuid()) as made:
        (made.project / "venv/lib").mkdir(parents=True)
        place = msgspec.structs.replace(made.place(), runs=(str(made.project / "venv"),))
        box = bubblewrap.find(place, Host())
        assert box
        made.run(
            box, "echo x > venv/lib/json.py; mv venv old; rm -rf venv; mkdir -p venv/lib; echo x > venv/lib/json.py"
        )
        box.close()
        assert list((made.project / "venv").rglob("*")) == [made.project / "venv/lib"]


def test_whether_the_command_was_reached_is_known() -> None:
    with world(os.getuid()) as made:
        box = box_in(made)
        for command, cwd, began in (("exit 3", made.project, True), ("true", made.project / "vanished", False)):
            launch = box.launch(["bash", "-c", command], str(cwd))
            subprocess.run(launch.argv, pass_fds=launch.fds, check=False)
            for descriptor in launch.fds:
                os.close(descriptor)
            launch.finish()
            assert launch.began() is began, command
        box.close()


@pytest.mark.parametrize("name", [".github", "hooks", "hooks/deep", ".ra", ".git", ".git/hooks", "sub"])
@pytest.mark.parametrize("absolute", [True, False])
def test_a_folder_that_becomes_a_link_opens_nothing_outside(name: str, *, absolute: bool) -> None:
    with world(people()[-1]) as made:
        place = msgspec.structs.replace(made.place(), runs=(str(made.project / "hooks/deep/a.py"),))
        box = bubblewrap.find(place, Host((str(made.data),)))
        assert box
        if made.uid != os.getuid():
            made.own(box)
        target = str(made.outside) if absolute else "../" * (name.count("/") + 1) + "outside"
        made.run(box, f"mkdir -p $(dirname {name}); rm -rf {name}; mv {name} moved; ln -s {target} {name}")
        for _ in range(2):
            output = made.run(box, f"echo x > {name}/canary.txt; echo x > {name}/new; echo x > {made.outside}/new")
            assert made.harm(output) == []
        box.close()


def test_a_folder_with_instructions_cannot_be_moved_away() -> None:
    with world(people()[-1]) as made:
        box = box_in(made)
        (made.outside / "CLAUDE.md").write_text("another project's")
        made.run(box, f"mv sub moved; ln -s {made.outside} sub")
        assert (made.outside / "CLAUDE.md").read_text() == "another project's"
        assert (made.project / "sub/CLAUDE.md").read_text() == "rules\n"
        (made.outside / "CLAUDE.md").unlink()
        box.close()


def test_a_repository_that_appears_later_is_protected_too() -> None:
    with world(os.getuid()) as made:
        (made.project / ".git").rename(made.project / "later")
        box = box_in(made)
        (made.project / "later").rename(made.project / ".git")
        (made.project / ".git/hooks").mkdir()
        made.run(box, "mv .git old; mkdir -p .git/hooks; echo x > .git/hooks/pre-commit; echo x > .git/config")
        assert made.harm() == []
        box.close()
