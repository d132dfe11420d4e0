"""What runs along with a trusted file: whether it is known, hashed, and kept from being written."""

from pathlib import Path

import pytest
import yaml

from ra.config.reach import closed, reach, written
from ra.config.trust import Trust, guarded, risky


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def names(paths: tuple[str, ...], root: Path) -> list[str]:
    return [str(Path(path).relative_to(root)) for path in paths]


@pytest.mark.parametrize(
    ("start", "text", "loaded"),
    [
        ("hooks/a.py", "import helpers", ["hooks/helpers.py"]),
        ("hooks/a.py", "import os, helpers as h", ["hooks/helpers.py"]),
        ("hooks/a.py", "def f():\n    from helpers import go", ["hooks/helpers.py"]),
        ("hooks/a.py", "from pkg import (\n  sub, # x\n)", ["hooks/pkg/__init__.py", "hooks/pkg/sub.py"]),
        ("hooks/a.py", "import pkg.sub", ["hooks/pkg/__init__.py", "hooks/pkg/sub.py"]),
        ("hooks/pkg/a.py", "from . import sub\nfrom ..helpers import x", ["hooks/pkg/sub.py", "hooks/helpers.py"]),
        ("hooks/a.py", "importlib.import_module('helpers')", ["hooks/helpers.py"]),
        ("hooks/a.py", "import fast", ["hooks/fast.cpython-311-x86_64-linux-gnu.so"]),
        ("hooks/a.py", "import json, src.main", []),
        ("hooks/a.py", "# import helpers\nx = 'helpers.py'", []),
        ("hooks/a.sh", ". ./lib.sh", ["hooks/lib.sh"]),
        ("hooks/a.sh", 'source "$(dirname "$0")/lib.sh"', ["hooks/lib.sh"]),
        ("hooks/a.sh", 'HERE=x\n. "${HERE}/lib.sh" || exit 1', ["hooks/lib.sh"]),
        ("hooks/a.sh", "if true; then python3 hooks/helpers.py; fi", ["hooks/helpers.py"]),
        ("hooks/a.sh", "ruff check src/main.py", []),
        ("hooks/a", "#!/bin/sh\nexec hooks/lib.sh", ["hooks/lib.sh"]),
        ("hooks/a.js", "const x = require('./lib')", ["hooks/lib.js", "hooks/lib.sh"]),
        ("hooks/a.mjs", 'import { x } from "./lib.js"', ["hooks/lib.js"]),
        ("hooks/a.rb", "require_relative 'lib.js'", ["hooks/lib.js"]),
    ],
)
def test_what_a_file_loads_of_the_project_is_known(tmp_path: Path, start: str, text: str, loaded: list[str]) -> None:
    shared = ("helpers.py", "pkg/__init__.py", "pkg/sub.py", "fast.cpython-311-x86_64-linux-gnu.so", "lib.sh", "lib.js")
    write(tmp_path, {"src/main.py": "", **{f"hooks/{name}": "" for name in shared}, start: text})
    assert names(reach([str(tmp_path / start)], str(tmp_path)), tmp_path) == [start, *loaded]


def test_what_is_loaded_loads_more_and_a_circle_ends(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": "import b", "b.py": "import c", "c.py": "import a"})
    assert names(reach([str(tmp_path / "a.py")], str(tmp_path)), tmp_path) == ["a.py", "b.py", "c.py"]


def test_nothing_outside_the_project_is_followed(tmp_path: Path) -> None:
    write(tmp_path, {"p/a.py": "from ..outside import x\nfrom .... import y", "outside.py": ""})
    assert names(reach([str(tmp_path / "p/a.py")], str(tmp_path / "p")), tmp_path) == ["p/a.py"]


HOOKS = """
agent:
  middleware:
    beforeModelCall: [./hooks/a.py]
    onError: [{shell: python3 -m tools.check}, {shell: make lint}, {shell: .venv/bin/python hooks/b.py}]
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "p"
    write(root, {"hooks/a.py": "import shared", "hooks/b.py": "import json, shared", "hooks/shared.py": ""})
    write(root, {"tools/__init__.py": "", "tools/check.py": "", "Makefile": "lint:\n", "src/main.py": ""})
    (root / ".venv/bin").mkdir(parents=True)
    (root / ".venv/bin/python").symlink_to("/bin/sh")
    return root


@pytest.mark.parametrize(
    ("file", "asked"),
    [
        ("hooks/shared.py", ["beforeModelCall.0", "onError.2"]),
        ("hooks/json.py", ["onError.2"]),  # it would take the place of the real one
        ("tools/check.py", ["onError.0"]),
        ("Makefile", ["onError.1"]),
        ("src/main.py", []),
    ],
)
def test_a_change_of_what_a_trusted_file_loads_asks_again(project: Path, file: str, asked: list[str]) -> None:
    trust = Trust(project.parent / "trust.json")
    trust.record(project, risky(yaml.safe_load(HOOKS), base=project, root=project))
    with (project / file).open("a") as opened:
        opened.write("# changed\n")
    found = trust.ask_for(project, risky(yaml.safe_load(HOOKS), base=project, root=project))
    assert [".".join(item.key[2:]) for item in found] == asked


def test_a_link_that_a_command_goes_through_is_kept_too(project: Path) -> None:
    items = risky(yaml.safe_load(HOOKS), base=project, root=project)
    assert str(project / ".venv/bin/python") in items[3].files


def test_a_file_that_is_not_there_yet_is_named_and_closes_no_folder(project: Path) -> None:
    hooks = {"beforeModelCall": [{"shell": "sh ./gone/check.sh; cat hooks/new; echo a/*.sh https://x.y/z word"}]}
    (item,) = risky({"agent": {"middleware": hooks}}, base=project, root=project)
    assert names(item.files, project) == ["gone/check.sh", "hooks/new"]
    assert names(guarded(item.files, project), project) == ["gone/check.sh", "hooks/new"]


def test_a_folder_with_nothing_but_trusted_code_is_closed(project: Path) -> None:
    files = [str(project / name) for name in ("hooks/a.py", "hooks/b.py", "hooks/shared.py", "src/main.py", "top.py")]
    write(project, {"hooks/README.md": "", "src/other.py": ""})
    assert names(closed(files, str(project)), project) == ["hooks"]
    assert names(guarded([files[3]], project), project) == ["src/main.py"]


@pytest.mark.parametrize(
    ("command", "only_written"),
    [
        ("jq -c .tool_call >> calls.jsonl", {"calls.jsonl"}),
        ("date > log/now.txt 2>errors.txt; true", {"log/now.txt", "errors.txt"}),
        ("cat < in.txt", set()),
        ("cat x > run.sh; sh run.sh", set()),
        ("sh '>' run.sh", set()),
        ('sh ">" run.sh', set()),
        ("sh \\> run.sh", set()),
        ("sh -c 'x > run.sh' y", set()),
        ("cat <> run.sh", set()),
        ("tee >(sh run.sh)", set()),
        ("echo 'it > run.sh", set()),
    ],
)
def test_what_a_command_only_writes_to_is_not_what_it_runs(command: str, only_written: set[str]) -> None:
    assert written(command) == only_written


def test_a_hook_that_writes_a_file_keeps_its_trust(tmp_path: Path) -> None:
    data = {"agent": {"middleware": {"afterToolExecution": [{"shell": "jq -c .tool_call >> calls.jsonl"}]}}}
    trust = Trust(tmp_path / "trust.json")
    project = tmp_path / "project"
    write(project, {"ra.yaml": yaml.safe_dump(data), "calls.jsonl": "1"})
    trust.record(project, risky(data, base=project, root=project))

    write(project, {"calls.jsonl": "1\n2"})

    assert trust.ask_for(project, risky(data, base=project, root=project)) == ()
