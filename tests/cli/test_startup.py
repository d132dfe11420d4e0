"""Start-up time is a feature: what a prompt does not need is not imported before its request is sent."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.startup import HELD, imported_before_first_request, ours_and_foreign

FORBIDDEN = {
    *("typer", "click", "rich", "pydantic", "httpx", "httpx2", "httpcore", "anyio", "anthropic", "openai", "google"),
    *("tiktoken", "regex", "genai_prices", "prompt_toolkit", "mcp", "starlette", "uvicorn", "tree_sitter", "yaml"),
    *("ruamel", "pathspec", "pypdf", "markdownify", "bs4", "xllamacpp", "platformdirs", "PIL"),
}


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return imported_before_first_request(tmp_path_factory.mktemp("startup"))


def test_nothing_heavy_is_imported_before_the_first_request(imported: list[str]) -> None:
    packages = {name.partition(".")[0] for name in imported} | set(imported)
    assert "ra.session.loop" in imported  # the log was read at the right moment
    assert packages & FORBIDDEN == set()


def test_modules_before_the_first_request_are_those_that_are_held(imported: list[str]) -> None:
    held = HELD.read_text().split()
    new = [name for name in ours_and_foreign(imported) if name not in held]
    assert new == [], "a prompt imports more than before; if that is meant: python -m tests.regenerate"


def test_the_version_is_told_without_any_of_it(tmp_path: Path) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "ra", "--version"]
    env = {"HOME": str(tmp_path)}  # without what `make coverage` would import first
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=True, timeout=60)
    imported = [line.rpartition("|")[2].strip() for line in done.stderr.splitlines()]
    loaded = [name for name in imported if name.startswith("ra")]
    assert loaded == ["ra", "ra.cli", "ra.cli.main", "ra.core", "ra.core.version"]
