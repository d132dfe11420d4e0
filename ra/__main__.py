"""`python -m ra` is `ra`."""

import os
import sys

# `python -m` puts the working directory first: a project's json.py must never stand in for the library. Where ra itself
# runs from there, in its own checkout, it stays. Before any other import, for the same reason: pathlib would be one.
# ruff: noqa: PTH109, PTH120
_HOME = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
if sys.path and os.path.realpath(sys.path[0]) == os.getcwd() != _HOME:
    del sys.path[0]

from ra.cli.main import main  # noqa: E402 - after the path is safe, see above

main()
