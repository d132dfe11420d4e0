"""The package as an index shows it and as people install it: what is imported is declared, and Windows is told."""

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

NAMES = {
    "PIL": "pillow",
    "acp": "agent-client-protocol",
    "google": "google-genai",
    "markdown_it": "markdown-it-py",
    "mcp_types": "mcp",
    "ruamel": "ruamel-yaml",
    "yaml": "pyyaml",
    "opentelemetry": "opentelemetry-sdk",
}
"""Packages that are imported by another name than they are installed by."""


def test_everything_that_is_imported_is_declared() -> None:
    extras = [line for lines in PROJECT["optional-dependencies"].values() for line in lines]
    declared = {re.split(r"[^\w-]", line)[0].lower() for line in (*PROJECT["dependencies"], *extras)}
    imported: set[str] = set()
    for path in (ROOT / "ra").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Import(names=names):
                    imported |= {alias.name.partition(".")[0] for alias in names}
                case ast.ImportFrom(module=str(module), level=0):
                    imported.add(module.partition(".")[0])
                case _:
                    pass
    foreign = imported - sys.stdlib_module_names - {"ra"}
    assert {NAMES.get(name, name.replace("_", "-")) for name in foreign} - declared == set()


def metadata(project_url: str) -> dict[str, Any]:
    """What the build says of the package; a project's address that is no web address is none."""
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "metadata"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        cwd=ROOT,
        env=os.environ | {"RA_PROJECT_URL": project_url},
    )
    fields: dict[str, Any] = json.loads(done.stdout)
    return fields


@pytest.mark.parametrize(
    "remote",
    [
        "https://code.example/team/ra",
        "https://user:token@code.example/team/ra.git/",
        "git@code.example:team/ra.git",
        "ssh://git@code.example/team/ra.git",
    ],
)
def test_an_index_shows_where_the_project_is(remote: str) -> None:
    url = "https://code.example/team/ra"
    shown = metadata(remote)
    assert shown["urls"] == {
        "Homepage": url,
        "Repository": url,
        "Documentation": f"{url}/blob/HEAD/README.md",
        "Changelog": f"{url}/blob/HEAD/CHANGELOG.md",
    }
    targets = re.findall(r"\]\(([^)]+)\)", shown["readme"]["text"])
    paths = [target.removeprefix(f"{url}/blob/HEAD/").removeprefix(f"{url}/raw/HEAD/") for target in targets]
    assert len(paths) > 10
    assert [path for path in paths if not (ROOT / path.partition("#")[0]).is_file()] == []


def test_without_an_address_an_index_shows_no_dead_link() -> None:
    shown = metadata("/srv/git/ra")
    assert "urls" not in shown
    assert re.findall(r"\]\((?!https?:)[^)]+\)", shown["readme"]["text"]) == []
    assert "| Quickstart | " in shown["readme"]["text"]


def test_windows_is_told_in_a_sentence() -> None:
    script = "import sys; sys.platform = 'win32'\nfrom ra.cli.main import main\nmain(['hello'])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "ra: Windows itself is not supported. Install ra in WSL (wsl --install).\n"
