"""What of the machine is in the box: a home of its own, toolchains, no keys and no sockets of other programs."""

# A table is read by the line.
# ruff: noqa: E501, SIM905

import os
import shutil
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from ra.tools.sandbox import bubblewrap
from ra.tools.sandbox.box import Host
from tests.tools.world import CANARY, PYTHON, World, people, world

pytestmark = pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is not installed")

CREDENTIALS = (
    ".ssh/id_ed25519 .ssh/config .aws/credentials .aws/config .aws/sso/cache/x.json .gnupg/private-keys-v1.d/k.key .kube/config "
    ".azure/accessTokens.json .azure/msal_token_cache.json .docker/config.json .config/gh/hosts.yml .config/hub .netrc "
    ".config/gcloud/application_default_credentials.json .config/gcloud/credentials.db .config/doctl/config.yaml .pgpass "
    ".config/rclone/rclone.conf .config/op/config .config/glab-cli/config.yml .config/containers/auth.json .pypirc .npmrc "
    ".config/git/credentials .git-credentials .gitconfig .cargo/credentials .cargo/credentials.toml .gem/credentials "
    ".m2/settings.xml .m2/settings-security.xml .gradle/gradle.properties .terraform.d/credentials.tfrc.json .terraformrc "
    ".vault-token .my.cnf .mylogin.cnf .env .bash_history .zsh_history .python_history .psql_history .mysql_history .lesshst "
    ".node_repl_history .config/composer/auth.json .composer/auth.json .yarnrc.yml .yarnrc .condarc .databrickscfg .s3cfg .boto "
    ".config/heroku/x.json .config/fly/config.yml .fly/config.yml .config/netlify/config.json .config/vercel/auth.json "
    ".cache/huggingface/token .huggingface/token .kaggle/kaggle.json .config/openai/key .anthropic/key .claude/.credentials.json "
    ".codex/auth.json .config/ra/ra.yaml .local/share/ra/allowed.json .local/share/keyrings/login.keyring .mozilla/firefox/x/key4.db "
    ".config/google-chrome/Default/Cookies .config/JetBrains/x/c.kdbx .password-store/a.gpg .1password/agent .irssi/config .msmtprc "
    ".subversion/auth/svn.simple/x .config/pip/pip.conf .pip/pip.conf .config/nuget/NuGet.Config .julia/servers/x/auth.toml "
    ".local/share/uv/credentials/credentials.toml .local/share/pipx/.env .pyenv/.netrc .rustup/credentials.toml "
    "notes.txt code/other/.env Documents/passwords.kdbx"
).split()  # fmt: skip


def put(home: Path, names: list[str], text: str) -> None:
    for name in names:
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)


def box_in(made: World, **more: object) -> bubblewrap.Bubblewrap:
    host = Host((str(made.data),), env={"PATH": f"{made.home}/tools/bin:/usr/local/bin:/usr/bin:/bin"})
    if made.uid != os.getuid():
        subprocess.run(["chown", "-R", f"{made.uid}:{made.uid}", made.home], check=True)
    box = bubblewrap.find(made.place(), msgspec.structs.replace(host, **more))
    assert box
    if made.uid != os.getuid():
        made.own(box)
    return box


@pytest.mark.parametrize("uid", people())
def test_no_credential_of_a_home_is_in_the_box_and_toolchains_are(uid: int) -> None:
    with world(uid) as made:
        put(made.home, CREDENTIALS, CANARY)
        put(
            made.home,
            [".pyenv/shims/a", ".cargo/bin/b", ".nvm/c", "tools/bin/d", "tools/lib/e", "more/f"],
            "#!/bin/echo tool",
        )
        box = box_in(made, readable=(str(made.home / "more"),))
        seen = made.run(box, "cd ~; find . -type f -exec cat {} + ; for f in ~/.[a-z]*; do cat $f; done 2>&1")
        assert CANARY not in seen
        assert seen.count("tool") == 6
        assert made.run(box, f"{made.home}/.cargo/bin/b").startswith("tool")
        changed = made.run(box, "for f in .pyenv/shims/a .cargo/bin/b tools/bin/d more/f; do echo x > ~/$f; done")
        assert changed.count("Read-only") == 4
        made.run(box, "echo kept > ~/.config-of-mine; mkdir -p ~/.cache/x ~/.config/y ~/.cargo/registry")
        assert made.run(box, "cat ~/.config-of-mine").strip() == "kept"
        assert not (made.home / ".config-of-mine").exists()
        box.close()


def test_the_home_is_kept_for_the_project(tmp_path: Path) -> None:
    with world(os.getuid()) as made:
        home = str(tmp_path / "homes/p")
        first = box_in(made, box_home=home)
        made.run(first, "mkdir -p ~/.cargo/registry; echo kept > ~/note")
        first.close()
        assert made.run(box_in(made, box_home=home), "cat ~/note").strip() == "kept"
        assert [oct(folder.stat().st_mode & 0o777) for folder in (Path(home), Path(home).parent)] == ["0o700", "0o700"]


@pytest.mark.parametrize("uid", people())
def test_sockets_of_the_host_are_reached_by_no_name(uid: int) -> None:
    """Bound by a relative name, renamed, linked, in another network namespace; in the project, at home and elsewhere."""
    with world(uid) as made:
        servers = []
        here = Path.cwd()
        for folder in (made.project, made.home, made.outside):
            os.chdir(folder)
            try:
                servers += [listening("relative"), listening("moved"), listening("linked")]
            finally:
                os.chdir(here)
            (folder / "moved").rename(folder / "elsewhere")
            os.link(folder / "linked", folder / "twin")
        far = []
        if os.getuid() == 0:
            code = (
                "import socket,time;s=socket.socket(1);s.bind('far');s.listen(4);print(1,flush=True);"
                f"s.accept();open('{made.data}/visited','w')"
            )
            far = [subprocess.Popen(["unshare", "-n", PYTHON, "-c", code], cwd=made.project, stdout=subprocess.PIPE)]
            assert far[0].stdout
            far[0].stdout.readline()
        subprocess.run(["chmod", "-R", "a+rwX", made.project, made.home, made.outside], check=True)
        box = box_in(made)
        names = [folder / name for folder in (made.project, made.home, made.outside) for name in
                 ("relative", "elsewhere", "moved", "linked", "twin", "far")]  # fmt: skip
        tries = f"import socket\nfor n in {list(map(str, names))!r}:\n try: socket.socket(1).connect(n); print('in', n)\n except OSError: pass"
        assert made.run(box, f'{PYTHON} -c "{tries}"') == ""
        assert not any(made._visited(server) for server in servers)
        assert not (made.data / "visited").exists()
        for server in servers:
            server.close()
        for process in far:
            process.kill()
            process.wait()
        box.close()


def listening(name: str) -> socket.socket:
    server = socket.socket(socket.AF_UNIX)
    server.bind(name)
    server.listen(4)
    server.setblocking(False)
    return server


def test_sockets_made_in_the_box_work_there() -> None:
    serve = (
        "import socket,threading;s=socket.socket(1);s.bind('{0}');s.listen();"
        "threading.Thread(target=lambda: s.accept()[0].send(b'hi')).start();"
        "c=socket.socket(1);c.connect('{0}');print(c.recv(2).decode())"
    )
    with world(people()[-1]) as made:
        box = box_in(made)
        for name in ("./s", "/tmp/s", f"{made.home}/s"):
            again = f'rm -f {name}; {PYTHON} -c "{serve.format(name)}"'
            assert made.run(box, again).strip() == "hi"
            assert made.run(box, again).strip() == "hi"  # what the last one left behind is in nobody's way
        pool = "from multiprocessing import Manager, Pool; print(sum(Pool(2).map(abs, [-1, 2]))); print(Manager().list([3]))"
        assert made.run(box, f'{PYTHON} -c "{pool}"').split() == ["3", "[3]"]
        if shutil.which("tmux"):
            assert made.run(box, "SHELL=/bin/sh tmux new -d 'sleep 9' && tmux ls | wc -l").strip() == "1"
        box.close()


@pytest.mark.parametrize("below", ["home", "tmp"])
def test_a_link_in_the_place_of_a_folder_above_the_project_leads_no_mount_away(below: str, tmp_path: Path) -> None:
    """bubblewrap makes the folders that it mounts on, and would follow a link to the host while it does."""
    home = tmp_path / "home"
    project = (home if below == "home" else tmp_path) / "code/project"
    project.mkdir(parents=True)
    home.mkdir(exist_ok=True)
    with world(os.getuid()) as made:
        made.project, made.home = project, home
        box = box_in(made, box_home=str(tmp_path / "data/home"))
        above = project.parent
        for target in ("/oldroot" + str(tmp_path), str(tmp_path), "/newroot/etc"):
            made.run(
                box, f"cd /; mv {above} {above}2; rm -rf {above}; ln -sfn {target} {above}; ln -sfn {target} ~/.nvm"
            )
            made.run(box, f"cd {project} && echo here > seen")
        assert (project / "seen").read_text() == "here\n"
        assert {path.name for path in tmp_path.iterdir()} <= {"home", "code", "data"}
        box.close()


def test_git_knows_who_commits_and_nothing_else_of_the_users_configuration() -> None:
    with world(people()[-1]) as made:
        for name in ("user.name", "user.email"):
            subprocess.run(["git", "config", "-f", made.project / ".git/config", "--unset", name], check=True)
        (made.home / "ignored").write_text("*.secret\n")
        (made.home / ".gitconfig").write_text(
            "[user]\nname = Ann\nemail = ann@x\n[core]\nexcludesFile = ~/ignored\n"
            f"[http]\nextraHeader = {CANARY}\n[safe]\ndirectory = *\n"
        )
        box = box_in(made)
        command = "touch a.secret b; git add -A .; git commit -qm x; git log --format=%an%ae; git ls-files a.secret .env; git config -l"
        output = made.run(box, command, git=True)
        assert output.startswith("Annann@x\n")
        assert "a.secret" not in output
        assert ".env" not in output
        assert CANARY not in output
        box.close()


def test_other_projects_and_folders_of_the_machine_are_not_in_the_box() -> None:
    """What a distribution installs is; what people keep in /srv, /mnt or beside the project is not."""
    with world(os.getuid()) as made:
        box = box_in(made)
        top = set(made.run(box, "ls -A /").split())
        assert not top & {"srv", "mnt", "media", "home", "boot"} - {made.base.parts[1]}
        assert (
            made.run(box, f"{sys.executable} --version 2>&1; ls /usr/bin/env; touch /x /usr/x").count("Read-only") == 2
        )
        box.close()


def test_twenty_processes_in_one_project_run_every_command(tmp_path: Path) -> None:
    """Each has a box of its own on the same home; none puts anything into the project."""
    with world(os.getuid()) as made:
        before = sorted(path.name for path in made.project.iterdir())

        def work(number: int) -> list[str]:
            box = box_in(made, box_home=str(tmp_path / "home"))
            try:
                return [made.run(box, f"echo {number} > n{number}; cat n{number}; rm n{number}") for _ in range(2)]
            finally:
                box.close()

        with ThreadPoolExecutor(20) as pool:
            printed = list(pool.map(work, range(20)))
        assert printed == [[f"{number}\n"] * 2 for number in range(20)]
        assert sorted(path.name for path in made.project.iterdir()) == before


def test_packages_install_into_a_folder_of_the_path_and_replace_no_program_there() -> None:
    with world(os.getuid()) as made:
        folder = made.project / ".venv/bin"
        folder.mkdir(parents=True)
        (folder / "python3").symlink_to("/usr/bin/python3")
        (folder / "ls").write_text("mine")
        place = msgspec.structs.replace(made.place(), programs=(str(folder),), runs=(str(folder),))
        box = bubblewrap.find(place, Host(env={"PATH": f"{folder}:/usr/bin:/bin"}))
        assert box
        for name in ("python3", "ls", "git", "of-my-package"):
            made.run(box, f"rm -f .venv/bin/{name}; echo evil > .venv/bin/{name}")
        assert (folder / "python3").readlink() == Path("/usr/bin/python3")
        assert (folder / "ls").read_text() == "mine"
        assert not (folder / "git").exists()
        assert (folder / "of-my-package").read_text() == "evil\n"
        box.close()


def test_hard_links_of_installed_packages_can_be_written_and_no_others() -> None:
    with world(os.getuid()) as made:
        store = made.base / "store"
        store.mkdir()
        for name in ("node_modules/a/x.js", ".venv/lib/y.py", "src/z.py"):
            (store / Path(name).name).write_text("untouched")
            (made.project / name).parent.mkdir(parents=True)
            os.link(store / Path(name).name, made.project / name)
        (made.project / ".venv/pyvenv.cfg").touch()
        box = box_in(made)
        made.run(box, "for f in node_modules/a/x.js .venv/lib/y.py src/z.py; do echo new > $f; done")
        made.run(
            box, "touch src/pyvenv.cfg; mkdir -p e/node_modules; mv src e/node_modules/; mv linked.txt e/node_modules/"
        )
        made.run(box, "echo new > e/node_modules/src/z.py; echo new > src/z.py; echo new > e/node_modules/linked.txt")
        assert {path.name: path.read_text() for path in store.iterdir()} == {
            "x.js": "new\n",
            "y.py": "new\n",
            "z.py": "untouched",
        }
        assert made.harm() == []
        box.close()
