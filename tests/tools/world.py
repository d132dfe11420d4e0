"""A project, and around it everything that a command in a sandbox must not reach."""

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from ra.tools.policy.paths import Project
from ra.tools.sandbox.box import Box
from ra.tools.shell import MAX_TRIES

NOBODY = 65534
CANARY = "CANARY-4711"
PYTHON = next(path for path in ("/usr/bin/python3", "/usr/local/bin/python3", "python3") if shutil.which(path))


class World:
    """`base` holds the project, a home with keys, a folder outside and servers; `intact` says what has been touched."""

    def __init__(self, base: Path, uid: int) -> None:
        self.base = base
        self.uid = uid
        self.project = base / "project"
        self.outside = base / "outside"
        self.home = base / "home"
        self.data = base / "data"
        for folder in (self.project, self.outside, self.home / ".ssh", self.home / ".config/gh", self.data):
            folder.mkdir(parents=True)
        (self.home / ".ssh/id_rsa").write_text(CANARY)
        (self.home / ".config/gh/hosts.yml").write_text(CANARY)
        (self.home / ".netrc").write_text(CANARY)
        (self.data / "sessions.db").write_text(CANARY)
        (self.outside / "canary.txt").write_text("untouched")
        (self.outside / "linked.txt").write_text("untouched")
        subprocess.run(["git", "init", "-q", "-b", "main", self.project], check=True)
        subprocess.run(["git", "-C", self.project, "config", "user.email", "a@b"], check=True)
        subprocess.run(["git", "-C", self.project, "config", "user.name", "a"], check=True)
        shutil.rmtree(self.project / ".git/hooks")
        (self.project / "AGENTS.md").write_text("rules\n")
        (self.project / "sub").mkdir()
        (self.project / "sub/CLAUDE.md").write_text("rules\n")
        (self.project / "main.py").write_text("print('hello')\n")
        (self.project / ".env").write_text(f"KEY={CANARY}\n")
        (self.project / "link").symlink_to(self.outside)
        os.link(self.outside / "linked.txt", self.project / "linked.txt")
        self.config = (self.project / ".git/config").read_text()
        self.victim = subprocess.Popen(["sleep", "600"], env={"KEY": CANARY, "PATH": os.defpath}, **self.person())
        self._sockets = [self._listen(*kind) for kind in self._kinds()]
        self.port = self._sockets[0].getsockname()[1]
        self._sockets.append(self._listen(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", self.port)))
        if uid != os.getuid():
            subprocess.run(["chown", "-R", f"{uid}:{uid}", base], check=True)

    def person(self) -> dict[str, object]:
        """Who runs the commands."""
        return {} if self.uid == os.getuid() else {"user": self.uid, "group": self.uid, "extra_groups": []}

    def own(self, box: Box) -> None:
        """The box's private folders, as if this person had started ra."""
        subprocess.run(["chown", "-R", f"{self.uid}:{self.uid}", Path(box.private_tmp).parent], check=True)

    def place(self) -> Project:
        return Project(str(self.project), str(self.project), str(self.home))

    def run(self, box: Box, command: str, *, git: bool = False) -> str:
        """As Bash does it: once more when a socket of another program's vanished before it could be masked."""
        for _ in range(MAX_TRIES):
            output, began = self._run_once(box, command, git=git)
            if began:
                break
        return output

    def _run_once(self, box: Box, command: str, *, git: bool) -> tuple[str, bool]:
        launch = box.launch(["bash", "--norc", "-c", command], str(self.project), **({"git": True} if git else {}))
        env = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": str(self.home), **launch.env}
        try:
            done = subprocess.run(
                launch.argv,
                cwd=self.project,
                env=env,
                pass_fds=launch.fds,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=20,
                start_new_session=True,
                **self.person(),
            )
        finally:
            for descriptor in launch.fds:
                os.close(descriptor)
            launch.finish()
        return done.stdout.decode("utf-8", "replace"), launch.began()

    def filled(self, command: str) -> str:
        return command.format(
            port=self.port,
            python=PYTHON,
            outside=self.outside,
            project=self.project,
            home=self.home,
            data=self.data,
            victim=self.victim.pid,
            abstract=self.base.name,
            canary=CANARY,
        )

    def first_harm(self, box: Box, commands: Mapping[str, str]) -> dict[str, tuple[list[str], str]]:
        """The first command that does harm in the box, with the harm and what it printed; empty when none does."""
        for name, command in commands.items():
            output = self.run(box, self.filled(command))
            if found := self.harm(output):
                return {name: (found, output)}
        return {}

    def harm(self, output: str = "") -> list[str]:
        """What a command reached that it must not; empty when all is as it was."""
        harm = [f"reached {server.getsockname()!r}" for server in self._sockets if self._visited(server)]
        if CANARY in output:
            harm.append(f"read a secret: {output[:300]}")
        names = ("canary.txt", "linked.txt")
        harm += [f"changed {name}" for name in names if (self.outside / name).read_text() != "untouched"]
        if sorted(path.name for path in self.outside.iterdir()) != ["canary.txt", "linked.txt", "sock"]:
            harm.append("made or removed something outside")
        at_home = sorted(str(path.relative_to(self.home)) for path in self.home.rglob("*"))
        if at_home != [".config", ".config/gh", ".config/gh/hosts.yml", ".netrc", ".ssh", ".ssh/id_rsa"]:
            harm.append("made or removed something at home")
        if (self.project / ".git/config").read_text() != self.config:
            harm.append("changed .git/config")
        hooks = self.project / ".git/hooks"
        if hooks.is_dir() and any(hooks.iterdir()):
            harm.append("made a hook")
        for name in (
            ".ra",
            "CLAUDE.md",
            ".cursorrules",
            "ra.yaml",
            ".github/copilot-instructions.md",
            ".git/commondir",
        ):
            harm += [f"made {name}"] * os.path.lexists(self.project / name)
        for name in ("AGENTS.md", "sub/CLAUDE.md"):
            path = self.project / name
            if not path.is_file() or path.is_symlink() or path.read_text() != "rules\n":
                harm.append(f"changed {name}")
        if os.path.lexists(self.project / "other/AGENTS.md"):
            harm.append("made other/AGENTS.md")
        if self.victim.poll() is not None:
            harm.append("killed another process")
        return harm

    def close(self) -> None:
        self.victim.kill()
        self.victim.wait()
        for server in self._sockets:
            server.close()

    def _kinds(self) -> list[tuple[int, int, object]]:
        return [
            (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
            (socket.AF_UNIX, socket.SOCK_STREAM, str(self.outside / "sock")),
            (socket.AF_UNIX, socket.SOCK_STREAM, str(self.project / "sock")),
            (socket.AF_UNIX, socket.SOCK_STREAM, f"\0{self.base.name}"),
        ]

    def _listen(self, family: int, kind: int, address: object) -> socket.socket:
        server = socket.socket(family, kind)
        server.bind(address)
        server.setblocking(False)
        if kind == socket.SOCK_STREAM:
            server.listen(8)
        return server

    def _visited(self, server: socket.socket) -> bool:
        """Whether somebody has come: the kernel keeps the visit until it is asked for."""
        try:
            server.accept()[0].close() if server.type == socket.SOCK_STREAM else server.recv(9)
        except BlockingIOError:
            return False
        return True


@contextlib.contextmanager
def world(uid: int) -> Iterator[World]:
    with outside_tmp() as base:
        made = World(base, uid)
        try:
            yield made
        finally:
            made.close()


@contextlib.contextmanager
def outside_tmp() -> Iterator[Path]:
    """A folder that is not below /tmp, which a box replaces: there is nothing to reach there."""
    above = next(path for path in ("/opt", "/srv", str(Path.cwd())) if os.access(path, os.W_OK))
    base = Path(tempfile.mkdtemp(prefix="ra-world-", dir=above))
    base.chmod(0o755)
    try:
        yield base
    finally:
        shutil.rmtree(base)


def people() -> list[int]:
    """As whom the tests run: as ourselves, and as an ordinary user when we are root."""
    return [0, NOBODY] if os.getuid() == 0 else [os.getuid()]


def check_a_repository_beside_its_work(box_in: Callable[[World], Box]) -> None:
    """As `git init --separate-git-dir` makes it: it gets no hooks and no other configuration."""
    with world(os.getuid()) as made:
        (made.project / ".git").rename(made.project / "store")
        (made.project / ".git").write_text("gitdir: store\n")
        box = box_in(made)
        made.run(box, "mkdir -p store/hooks; echo x > store/hooks/pre-commit")
        made.run(box, "echo x >> store/config; echo . > store/commondir")
        assert (made.project / "store/config").read_text() == made.config
        assert not (made.project / "store/hooks").exists()
        assert not (made.project / "store/commondir").exists()
        box.close()
