"""`ra` imports nothing from the project, whatever PYTHONPATH says and whatever lies in the working directory."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import RA, Shell

PLANTED = (
    "sitecustomize",
    "usercustomize",
    "ra",
    "msgspec",
    "json",
    "typing",
    "pypdf",
    "asyncio",
    "encodings/__init__",
)


def plant(folder: Path, names: tuple[str, ...]) -> Path:
    ran = folder / "ran"
    for name in names:
        path = folder / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"open({str(ran)!r}, 'a').write({name!r})\n")
    return ran


@pytest.mark.parametrize("named", ["{project}", ".", "", "{project}/src:{project}", None])
def test_nothing_of_the_project_is_imported(shell: Shell, named: str | None) -> None:
    ran = [plant(folder, PLANTED) for folder in (shell.project, shell.project / "src")]
    env = shell.env if named is None else {**shell.env, "PYTHONPATH": named.format(project=shell.project)}
    done = subprocess.run([RA, "permissions", "list"], cwd=shell.project, env=env, capture_output=True, text=True)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    assert not any(file.exists() for file in ran)


def test_a_python_that_was_not_started_isolated_imports_nothing_more(shell: Shell) -> None:
    """As `python -m ra` does: what Python itself loads at its start is not ours to stop."""
    ran = plant(shell.project / "src", ("msgspec", "pypdf", "ra_agent", "yaml"))
    env = {**shell.env, "PYTHONPATH": f"{shell.project}/src"}
    argv = [sys.executable, "-m", "ra", "permissions", "list"]
    done = subprocess.run(argv, cwd=shell.project, env=env, capture_output=True, text=True)
    assert (done.returncode, ran.exists()) == (0, False)


def test_a_link_to_the_program_starts_it(shell: Shell) -> None:
    (shell.project / "bin").mkdir()
    (shell.project / "bin/first").symlink_to(RA)
    (shell.project / "second").symlink_to("bin/first")
    done = subprocess.run(["./second", "--version"], cwd=shell.project, env=shell.env, capture_output=True, text=True)
    assert done.stdout.startswith("ra ")
