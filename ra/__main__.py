"""Runs `ra` for `python -m ra`."""

import os
import sys

# `python -m` puts the working directory first: a project's json.py must never replace the library's. It stays there
# when ra runs from its own checkout. This comes before other imports for the same reason: pathlib would be one.
# ruff: noqa: PTH109, PTH120
_HOME = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
if sys.path and os.path.realpath(sys.path[0]) == os.getcwd() != _HOME:
    del sys.path[0]

from ra.cli.main import main  # noqa: E402 - after the path is safe, see above

main()
