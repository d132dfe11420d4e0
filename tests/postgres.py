"""A real PostgreSQL server for the tests, one for each process of pytest, started when a test first asks for it."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

SERVER_USER = "nobody" if os.geteuid() == 0 else None  # PostgreSQL refuses to run as root


class PostgresServer:
    """A server of this test run, on a unix socket in a folder of its own."""

    def __init__(self, programs: Path) -> None:
        self._programs = programs
        self._remove_orphans()
        self.folder = Path(tempfile.mkdtemp(prefix=f"ra-pg-{os.getpid()}-"))
        if SERVER_USER:
            shutil.chown(self.folder, SERVER_USER)
        self._schemas = 0
        self._run("initdb", "-D", f"{self.folder}/data", "-E", "UTF8", "--locale=C.UTF-8", "-U", "ra", "-A", "trust")
        self.start()

    def start(self) -> None:
        options = f"-c listen_addresses= -c unix_socket_directories={self.folder} -c max_connections=200"
        data, log = f"{self.folder}/data", f"{self.folder}/log"
        self._run("pg_ctl", "-D", data, "-w", "-l", log, "-o", options, "start")

    def stop(self, mode: str = "fast") -> None:
        self._run("pg_ctl", "-D", f"{self.folder}/data", "-w", "-m", mode, "stop")

    @property
    def process(self) -> int:
        return int((self.folder / "data/postmaster.pid").read_text().split()[0])

    @contextlib.contextmanager
    def standing_still(self) -> Iterator[None]:
        """It neither answers nor hangs up, as when its machine is suspended."""
        processes = [self.process]
        for process in processes:  # grows meanwhile
            os.kill(process, signal.SIGSTOP)
            children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
            processes.extend(map(int, children))
        try:
            yield
        finally:
            for process in processes:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGCONT)

    @property
    def url(self) -> str:
        return f"postgresql://ra@/postgres?host={self.folder}"

    def fresh(self) -> str:
        """The address of an empty schema."""
        import psycopg

        self._schemas += 1
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA t{self._schemas}".encode())
        return f"{self.url}&options=-csearch_path%3Dt{self._schemas}"

    def _run(self, *words: str) -> None:
        command = [str(self._programs / words[0]), *words[1:]]
        user = {"user": SERVER_USER, "group": "nogroup"} if SERVER_USER else {}
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/", **user)  # type: ignore[call-overload] - options of one dict

    def remove(self) -> None:
        self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)

    def _remove_orphans(self) -> None:
        """Servers of runs that were killed: their folders name a process that is no more."""
        for folder in Path(tempfile.gettempdir()).glob("ra-pg-*-*"):
            owner = folder.name.split("-")[2]
            if owner.isdecimal() and not _is_alive(int(owner)):
                with contextlib.suppress(subprocess.CalledProcessError):  # it is stopped already
                    self._run("pg_ctl", "-D", f"{folder}/data", "-w", "-m", "immediate", "stop")
                shutil.rmtree(folder, ignore_errors=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def programs() -> Path | None:
    """Where PostgreSQL's programs are; Debian does not put them into PATH."""
    on_path = shutil.which("initdb")
    folders = [Path(on_path).parent] if on_path else sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    return folders[-1] if folders else None


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    folder = programs()
    if folder is None:
        pytest.skip("PostgreSQL is not installed")
    server = PostgresServer(folder)
    yield server
    server.remove()
