"""A real terminal for tests: `ra` on a pty, its screen as pyte sees it."""

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pyte

PATIENCE_S = 20.0


class PtyTerminal:
    """Types, looks and waits. `raw` is every byte that the program ever wrote."""

    def __init__(
        self,
        argv: list[str],
        *,
        env: dict[str, str],
        cwd: Path,
        columns: int = 100,
        rows: int = 30,
        emulate: bool = True,
    ) -> None:
        self.raw = bytearray()
        self.emulate = emulate
        self.screen = pyte.HistoryScreen(columns, rows, history=100_000, ratio=0.5)
        self._stream = pyte.ByteStream(self.screen)
        self._master, slave = pty.openpty()
        self.resize(columns, rows)
        self.process = subprocess.Popen(
            argv,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={"TERM": "xterm-256color", "LANG": "C.UTF-8"} | env,
            cwd=cwd,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)

    def __enter__(self) -> "PtyTerminal":
        return self

    def __exit__(self, *exc: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.hang_up()

    def hang_up(self) -> None:
        """The window is closed."""
        os.close(self._master)

    # --- hands ---

    def type(self, keys: str | bytes) -> None:
        data = keys.encode() if isinstance(keys, str) else keys
        while data:
            readable, writable, _ = select.select([self._master], [self._master], [], 1)
            if readable:
                self._pump()
            if writable:
                data = data[os.write(self._master, data[:4096]) :]

    def enter(self, text: str = "") -> None:
        self.type(text + "\r")

    def paste(self, text: str) -> None:
        self.type(f"\x1b[200~{text}\x1b[201~")

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.screen.resize(rows, columns)

    # --- eyes ---

    @property
    def text(self) -> str:
        """What is on the screen now."""
        return "\n".join(line.rstrip() for line in self.screen.display)

    @property
    def everything(self) -> str:
        """What is on the screen and what scrolled off it."""
        above = ["".join(line[x].data for x in range(self.screen.columns)).rstrip() for line in self.screen.history.top]
        return "\n".join([*above, self.text])

    def look(self, seconds: float = 0.0) -> None:
        """Take in what the program writes, for so long."""
        until = time.monotonic() + seconds
        while True:
            left = until - time.monotonic()
            if select.select([self._master], [], [], max(0.0, left))[0]:
                if not self._pump():
                    return
            elif left <= 0:
                return

    def wait(self, what: str | Callable[[], bool], seconds: float = PATIENCE_S) -> None:
        until = time.monotonic() + seconds
        met = what if callable(what) else lambda: what in self.everything
        seen = -1
        while seen == len(self.raw) or not met():
            seen = len(self.raw) if isinstance(what, str) else -1  # looking again at the same screen is dear
            assert time.monotonic() < until, f"waited for {what!r} in vain:\n{self.text}"
            self.look(0.01)

    def wait_exit(self, seconds: float = PATIENCE_S) -> int:
        until = time.monotonic() + seconds
        while self.process.poll() is None:
            assert time.monotonic() < until, f"it does not end:\n{self.text}"
            self.look(0.01)
        self.look(0.0)
        return self.process.returncode

    def _pump(self) -> bool:
        try:
            data = os.read(self._master, 65536)
        except OSError:
            return False  # the other side is closed
        self.raw += data
        if self.emulate:
            self._stream.feed(data)
        return bool(data)
