import os
import shutil
import stat
import subprocess
import time
from pathlib import Path

import msgspec
import pytest

from ra.tools.process import Launch
from ra.tools.sandbox import bubblewrap
from ra.tools.sandbox.guard import SET_ASIDE
from tests.tools.escapes import ALL
from tests.tools.world import World, check_a_repository_beside_its_work, people, world

pytestmark = pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is not installed")


def box_in(made: World) -> bubblewrap.Bubblewrap:
    box = bubblewrap.find(made.place(), (str(made.data),))
    assert box
    if made.uid != os.getuid():
        os.chown(box.private_tmp, made.uid, made.uid)
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
        assert made.run(box, command).split() == ["1", "z", "42"]
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


def test_nothing_is_left_behind() -> None:
    with world(people()[-1]) as made:
        before = sorted(path.name for path in made.project.iterdir())
        box = box_in(made)
        made.run(box, "true")
        box.close()
        assert sorted(path.name for path in made.project.iterdir()) == before
        assert not Path(box.private_tmp).exists()


def test_placeholders_of_a_killed_ra_are_taken_away() -> None:
    with world(people()[-1]) as made:
        box = box_in(made)
        os.mknod(made.project / ".ra", stat.S_IFSOCK | 0o600)
        made.run(box, "true")
        assert not (made.project / ".ra").exists()
        box.close()


def test_placeholders_stay_as_long_as_any_command_needs_them() -> None:
    with world(os.getuid()) as made:
        box = box_in(made)
        first, second = (box.launch(["true"], str(made.project)) for _ in range(2))
        first.finish()
        assert (made.project / ".ra").is_socket()
        second.finish()
        assert not (made.project / ".ra").exists()
        for descriptor in (*first.fds, *second.fds):
            os.close(descriptor)
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


def test_a_placeholder_that_is_taken_away_meanwhile_protects_nevertheless() -> None:
    with world(people()[-1]) as made:
        box = box_in(made)
        launch = box.launch(["bash", "-c", "sleep 0.3; echo obey > CLAUDE.md; echo tried"], str(made.project))
        running = subprocess.Popen(launch.argv, pass_fds=launch.fds, stdout=subprocess.PIPE, **made.person())
        time.sleep(0.1)
        (made.project / "CLAUDE.md").unlink()
        assert running.communicate()[0] == b"tried\n"
        launch.finish()
        assert not (made.project / "CLAUDE.md").exists()
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


def test_without_a_repository_none_can_be_planted() -> None:
    with world(people()[-1]) as made:
        shutil.rmtree(made.project / ".git")
        box = box_in(made)
        made.run(box, "git init .; mkdir -p .git/hooks; echo x > .git/hooks/pre-commit")
        assert not os.path.lexists(made.project / ".git")
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
        box = bubblewrap.find(place, ())
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
        box = bubblewrap.find(place, ())
        assert box
        made.run(
            box, "echo x > venv/lib/json.py; mv venv old; rm -rf venv; mkdir -p venv/lib; echo x > venv/lib/json.py"
        )
        box.close()
        assert list((made.project / "venv").rglob("*")) == [made.project / "venv/lib"]


def test_whether_the_command_was_reached_is_known() -> None:
    with world(os.getuid()) as made:
        box = box_in(made)
        for command, sockets, began in (("exit 3", (), True), ("true", (f"{made.outside}/vanished",), False)):
            launch = box.launch(["bash", "-c", command], str(made.project), sockets=sockets)
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
        box = bubblewrap.find(place, (str(made.data),))
        assert box
        if made.uid != os.getuid():
            os.chown(box.private_tmp, made.uid, made.uid)
        target = str(made.outside) if absolute else "../" * (name.count("/") + 1) + "outside"
        made.run(box, f"mkdir -p $(dirname {name}); rm -rf {name}; mv {name} moved; ln -s {target} {name}")
        for _ in range(2):
            output = made.run(box, f"echo x > {name}/canary.txt; echo x > {name}/new; echo x > {made.outside}/new")
            assert made.harm(output) == []
        box.close()


def test_what_was_put_back_is_not_put_where_a_link_leads() -> None:
    with world(people()[-1]) as made:
        box = box_in(made)
        (made.outside / "CLAUDE.md").write_text("another project's")
        made.run(box, f"mv sub moved; ln -s {made.outside} sub")
        assert (made.outside / "CLAUDE.md").read_text() == "another project's"
        assert (made.project / "sub/CLAUDE.md").read_text() == "rules\n"
        assert (made.project / f"sub{SET_ASIDE}").is_symlink()
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
