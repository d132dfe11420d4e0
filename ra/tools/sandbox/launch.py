"""How is a command started so that all of it can be ended? Under a warden, with or without chains."""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import ra
from ra.tools.process import Launch

_START = "import sys; sys.path.insert(0, sys.argv.pop(1)); from ra.tools.sandbox.warden import main; main()"


def under_warden(argv: list[str], landlock: dict[str, Any] | None = None) -> Launch:
    order = {"argv": argv, "landlock": landlock, "parent": os.getpid()}
    above = str(Path(ra.__file__).parent.parent)
    # Isolated and without site-packages: nothing of the project or the environment is loaded, and it starts in 11 ms.
    python = getattr(sys, "_base_executable", None) or sys.executable
    return Launch([python, "-I", "-S", "-c", _START, above, json.dumps(order)], killed_by=signal.SIGTERM)
