"""The package as an index shows it and as people install it: what is imported is declared, and Windows is told."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

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


def test_windows_is_told_in_a_sentence() -> None:
    script = "import sys; sys.platform = 'win32'\nfrom ra.cli.main import main\nmain(['hello'])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "ra: Windows itself is not supported. Install ra in WSL (wsl --install).\n"
