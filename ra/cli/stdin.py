"""Read piped text; a silent pipe never holds up a prompt given on the command line."""

import os
import select
import stat
import sys
from collections.abc import Callable

FIRST_BYTE_S = 3.0  # how long a pipe may stay silent before the prompt goes without it
STALL_S = 30.0  # and how long once it has spoken
MAX_BYTES = 64 * 1024 * 1024


def read(*, required: bool, warn: Callable[[str], None]) -> str:
    """Piped text, "" when there is none. With `required` there is no prompt without it, so it is waited for."""
    try:
        descriptor = sys.stdin.fileno() if sys.stdin is not None else -1
        mode = os.fstat(descriptor).st_mode
    except (OSError, ValueError):
        return ""  # stdin is closed
    if os.isatty(descriptor):
        return ""
    waits = not required and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISCHR(mode))
    piped = bytearray()
    while True:
        limit = (STALL_S if piped else FIRST_BYTE_S) if waits else None
        if limit is not None and not select.select([descriptor], [], [], limit)[0]:
            warn(
                f"stdin fell silent for {limit:g} s; going on with the {len(piped)} bytes that came."
                if piped
                else f"stdin is open but silent; going on without it after {limit:g} s."
            )
            break
        chunk = os.read(descriptor, 1 << 16)
        if not chunk:
            break
        piped += chunk
        if len(piped) > MAX_BYTES:
            warn(f"stdin holds more than {MAX_BYTES} bytes; the rest was left out.")
            break
    return bytes(piped[:MAX_BYTES]).decode("utf-8", "replace")
