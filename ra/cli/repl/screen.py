"""Writes each change to the terminal in one piece, and reads keys from it; a paste of megabytes in one piece."""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TextIO

from prompt_toolkit.data_structures import Size
from prompt_toolkit.input import Input, create_input
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import ColorDepth, Output, create_output
from prompt_toolkit.output.vt100 import Vt100_Output

PASTE_END = "\x1b[201~"
AT_ONCE = 65536  # bytes
TYPED_KEYS = 40  # keys that may wait to be read, when a user types on while the machine is busy
TYPED_LINES = 3


class Screen(Vt100_Output):
    """Output that can hold back its bytes, so that erasing, printing and redrawing reach the terminal as one write.

    Never asks for the cursor's position: the answer would arrive as keys, for whoever reads them then.
    """

    _held = False

    @contextmanager
    def whole(self) -> Iterator[None]:
        self._held = True
        try:
            yield
        finally:
            self._held = False
            self.flush()

    def flush(self) -> None:
        if not self._held:
            super().flush()


def at_once(output: Output) -> AbstractContextManager[None]:
    return output.whole() if isinstance(output, Screen) else nullcontext()


def screen(term: str, *, colour: bool) -> Output:
    if sys.platform == "win32":
        return create_output()
    size = Vt100_Output.from_pty(sys.stdout).get_size

    def known() -> Size:
        """Some terminals report no size at all."""
        reported = size()
        return Size(rows=reported.rows or 24, columns=reported.columns or 80)

    depth = None if colour else ColorDepth.DEPTH_1_BIT
    return Screen(sys.stdout, known, term=term, default_color_depth=depth, enable_bell=False, enable_cpr=False)


class _Parser(Vt100Parser):
    """Collects a paste in pieces. The original scans all of it for every kilobyte: 15 s for 5 MB."""

    _pieces: list[str]
    _tail = ""

    def feed(self, text: str) -> None:
        if not self._in_bracketed_paste:
            self._pieces, self._tail = [], ""
            super().feed(text)
            return
        seam = self._tail + text
        end = seam.find(PASTE_END)
        if end < 0:
            self._pieces.append(text)
            self._tail = seam[-len(PASTE_END) :]
            return
        paste = "".join([*self._pieces, text])
        at = len(paste) - len(seam) + end
        self._in_bracketed_paste = False
        self.feed_key_callback(KeyPress(Keys.BracketedPaste, paste[:at]))
        self.feed(paste[at + len(PASTE_END) :])


def keyboard() -> Input:
    if sys.platform == "win32":
        return create_input()
    from prompt_toolkit.input.vt100 import Vt100Input  # missing on Windows

    class Keyboard(Vt100Input):
        """Reads in large pieces. Lines that were typed before we were there came with \\n for Enter; they are sent.

        Some terminals do not mark a paste. Lines that arrive in one piece are one nevertheless: no hand types them.
        """

        _ahead = 0
        _paste = ""  # one without marks, until nothing follows it

        def __init__(self, stdin: TextIO) -> None:
            super().__init__(stdin)
            self.vt100_parser = _Parser(lambda key: self._buffer.append(key))

        def raw_mode(self) -> AbstractContextManager[None]:
            self._ahead = _waiting(self.fileno())
            return super().raw_mode()

        def read_keys(self) -> list[KeyPress]:
            typed = self.stdin_reader.read(AT_ONCE)
            typed_ahead, self._ahead = typed[: self._ahead], max(0, self._ahead - len(typed))
            typed = typed[len(typed_ahead) :]
            self.vt100_parser.feed(typed_ahead.replace("\n", "\r"))
            goes_on = bool(self._paste) and is_text(typed)
            if not self.vt100_parser._in_bracketed_paste and (goes_on or is_unmarked_paste(typed)):
                self._paste += typed
            else:
                self._end_paste()
                self.vt100_parser.feed(typed)
            keys, self._buffer = self._buffer, []
            return keys

        def flush_keys(self) -> list[KeyPress]:
            """Called after a moment without input."""
            self._end_paste()
            return super().flush_keys()

        def _end_paste(self) -> None:
            paste, self._paste = self._paste, ""
            if paste:
                self._buffer.append(KeyPress(Keys.BracketedPaste, paste))

    return Keyboard(sys.stdin)


def is_unmarked_paste(typed: str) -> bool:
    """Whether these simultaneous keys are lines that nobody typed while ra was not reading."""
    lines = typed.rstrip("\r\n").replace("\n", "\r").count("\r")
    return is_text(typed) and (lines >= TYPED_LINES or (lines > 0 and len(typed) >= TYPED_KEYS))


def is_text(typed: str) -> bool:
    return all(char.isprintable() or char in "\r\n\t" for char in typed)


def _waiting(descriptor: int) -> int:
    """The bytes that can be read at once; without raw mode, whole lines."""
    import fcntl
    import termios

    try:
        return int.from_bytes(fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4)), sys.byteorder)
    except OSError:
        return 0
