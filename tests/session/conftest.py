"""A user's shell, as the tests of the command line have it."""

from pathlib import Path

import pytest

from tests.cli.conftest import Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)
