"""User code comes from the named file and nowhere else, and its faults are told with file and line."""

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ra.core.errors import HookFailed, UserError
from ra.system import plugins


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def refused(ref: str, base: Path, **options: str) -> str:
    with pytest.raises(UserError) as caught:
        plugins.load(ref, base=base, **options)
    return str(caught.value)


def test_a_path_gives_the_module_and_a_name_gives_the_object(tmp_path: Path) -> None:
    write(tmp_path / "p.py", "answer = 42\ndef f(): return answer\n")
    assert plugins.load("p.py", base=tmp_path).answer == 42
    assert plugins.load("./p.py:answer", base=tmp_path) == 42
    assert plugins.load("p.py", base=tmp_path, name="f")() == 42
    assert plugins.load(str(tmp_path / "p.py"), base=Path("/")).answer == 42


def test_two_references_to_one_file_share_its_state_and_an_edit_loads_it_anew(tmp_path: Path) -> None:
    file = write(tmp_path / "p.py", "seen = []\n")
    first = plugins.load("p.py", base=tmp_path)
    assert plugins.load("p.py:seen", base=tmp_path) is first.seen
    file.write_text("seen = [1]\n")
    assert plugins.load("p.py:seen", base=tmp_path) == [1]


def test_a_missing_file_is_answered_with_the_near_name(tmp_path: Path) -> None:
    write(tmp_path / "enforce_budget.py", "")
    text = refused("enforce_bugdet.py", tmp_path)
    assert text == f"There is no file {tmp_path}/enforce_bugdet.py. Did you mean 'enforce_budget.py'?"


def test_a_missing_name_is_answered_with_the_near_name(tmp_path: Path) -> None:
    file = write(tmp_path / "p.py", "def resolve(): ...\n")
    assert refused("p.py:resovle", tmp_path) == f"{file} defines no 'resovle'. Did you mean 'resolve'?"


@pytest.mark.parametrize("ref", ["p.txt", "", "p.py:1x", "p.py:a.b", ":f", "os"])
def test_what_is_no_plugin_is_refused(ref: str, tmp_path: Path) -> None:
    assert refused(ref, tmp_path) == f"{ref!r} is not a plugin: write a path that ends in .py, or path.py:name."


@pytest.mark.parametrize(
    ("source", "line", "fault"),
    [
        ("x = 1\ndef f(:\n", 2, "SyntaxError"),
        ("x = 1\n\nraise ValueError('no')\n", 3, "ValueError: no"),
        ("def f():\n    import nosuchthing\nf()\n", 2, "ModuleNotFoundError: No module named 'nosuchthing'"),
        ("import sys\nsys.exit('bye')\n", 2, "SystemExit: bye"),
        ("import json\njson.loads('{')\n", 2, "JSONDecodeError"),
    ],
)
def test_a_fault_while_loading_names_file_and_line(source: str, line: int, fault: str, tmp_path: Path) -> None:
    file = write(tmp_path / "p.py", source)
    assert refused("p.py", tmp_path).startswith(f"{file}:{line}: {fault}")


def test_neighbours_of_a_plugin_cannot_be_imported_and_the_error_says_so(tmp_path: Path) -> None:
    write(tmp_path / "neighbour.py", "raise SystemExit('executed')\n")
    write(tmp_path / "p.py", "import neighbour\n")
    assert "A plugin is one file and cannot import the files beside it" in refused("p.py", tmp_path)


def test_bytecode_beside_a_plugin_is_not_executed_and_none_is_written(tmp_path: Path) -> None:
    file = write(tmp_path / "p.py", "who = 'evil'\n")
    subprocess.run([sys.executable, "-m", "py_compile", str(file)], check=True)
    compiled = next((tmp_path / "__pycache__").iterdir())
    stat = file.stat()
    file.write_text("who = 'good'\n")
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # the .pyc looks up to date
    assert plugins.load("p.py:who", base=tmp_path) == "good"
    compiled.unlink()
    plugins.load("p.py", base=tmp_path)
    assert list((tmp_path / "__pycache__").iterdir()) == []


SHADOWS = "argparse asyncio ctypes h11 json msgspec re sitecustomize sqlite3 string tempfile typing usercustomize yaml"


@pytest.mark.parametrize("start", [[str(Path(sys.executable).parent / "ra")], [sys.executable, "-m", "ra"]])
def test_a_projects_json_py_is_never_imported_in_place_of_the_library(tmp_path: Path, start: list[str]) -> None:
    executed = tmp_path / "executed"
    for name in SHADOWS.split():
        write(tmp_path / f"{name}.py", f"open({str(executed)!r}, 'a').write({name!r})\n")
    write(tmp_path / "evil.pth", f"import os; open({str(executed)!r}, 'a')\n")
    write(tmp_path / "ra.yaml", "agent: {middleware: {beforeModelCall: [./plugin.py]}}\n")
    write(tmp_path / "plugin.py", "import json\ndef middleware(ctx): print(json.dumps([1]))\n")
    write(tmp_path / "script.yaml", "- text: Hello\n")
    done = subprocess.run(
        [*start, "--trust", "--provider", "scripted", "--model", "script.yaml", "hi"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "RA_HOME": str(tmp_path / "data")},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert (done.stdout, done.stderr, executed.exists()) == ("Hello\n", "[1]\n", False)


def test_dataclasses_with_postponed_annotations_work_in_a_plugin(tmp_path: Path) -> None:
    write(
        tmp_path / "p.py",
        "from __future__ import annotations\nfrom dataclasses import dataclass\n@dataclass\nclass A:\n    x: int\n",
    )
    assert plugins.load("p.py:A", base=tmp_path)(3).x == 3


def test_print_in_a_plugin_goes_to_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "p.py", "def f(): print('hello', 1, sep='-')\n")
    plugins.load("p.py:f", base=tmp_path)()
    assert capsys.readouterr() == ("", "hello-1\n")


def test_sync_and_async_functions_are_called_alike(tmp_path: Path, worker: plugins.Worker) -> None:
    write(tmp_path / "p.py", "def f(x): return x + 1\nasync def g(x): return x + 2\n")
    module = plugins.load("p.py", base=tmp_path)

    async def both() -> list[int]:
        return [
            await worker.call(function, 1, timeout_s=5, file=tmp_path / "p.py", what="hook")
            for function in (module.f, module.g)
        ]

    assert asyncio.run(both()) == [2, 3]


@pytest.mark.parametrize(
    ("body", "line", "text"),
    [
        ("def f():\n    x = 1\n    raise KeyError('k')\n", 3, "hook failed: KeyError: 'k'"),
        ("async def f():\n    raise ValueError('v')\n", 2, "hook failed: ValueError: v"),
        ("import json\ndef f():\n    json.loads('{')\n", 3, "hook failed: JSONDecodeError"),
        ("def f():\n    raise SystemExit(3)\n", 2, "hook failed: RuntimeError: SystemExit: 3"),
        ("import time\ndef f():\n    time.sleep(60)\n", 3, "hook took longer than 0.2 s."),
        ("import time\nasync def f():\n    x = 1\n    time.sleep(60)\n", 4, "hook took longer than 0.2 s."),
        ("import asyncio\nasync def f():\n    await asyncio.sleep(60)\n", 3, "hook took longer than 0.2 s."),
    ],
)
def test_a_fault_while_running_names_file_line_and_hook(
    body: str, line: int, text: str, tmp_path: Path, worker: plugins.Worker
) -> None:
    file = write(tmp_path / "p.py", body)
    function = plugins.load("p.py:f", base=tmp_path)
    began = time.monotonic()
    with pytest.raises(HookFailed) as caught:
        asyncio.run(worker.call(function, timeout_s=0.2, file=file, what="hook"))
    assert str(caught.value).startswith(f"{file}:{line}: {text}")
    assert time.monotonic() - began < 30


def test_after_a_blocking_call_was_left_behind_the_next_call_works(tmp_path: Path, worker: plugins.Worker) -> None:
    file = write(tmp_path / "p.py", "import time\ndef slow(): time.sleep(30)\ndef quick(): return 'ok'\n")
    module = plugins.load("p.py", base=tmp_path)

    async def both() -> str:
        with pytest.raises(HookFailed):
            await worker.call(module.slow, timeout_s=0.1, file=file, what="hook")
        answer: str = await worker.call(module.quick, timeout_s=5, file=file, what="hook")
        return answer

    assert asyncio.run(both()) == "ok"


def test_a_hook_that_cancels_itself_is_a_failure_and_no_interrupt(tmp_path: Path, worker: plugins.Worker) -> None:
    file = write(tmp_path / "p.py", "import asyncio\nasync def f(): raise asyncio.CancelledError\n")
    with pytest.raises(HookFailed, match="cancelled itself"):
        asyncio.run(worker.call(plugins.load("p.py:f", base=tmp_path), timeout_s=5, file=file, what="hook"))


def test_a_thread_left_behind_does_not_keep_the_program_from_ending(tmp_path: Path) -> None:
    write(tmp_path / "p.py", "import time\ndef f(): time.sleep(60)\n")
    code = f"""
import asyncio
from pathlib import Path
from ra.system import plugins
from ra.core.errors import HookFailed
file = Path({str(tmp_path / "p.py")!r})
try:
    asyncio.run(plugins.Worker().call(plugins.load("p.py:f", base=file.parent), timeout_s=0.1, file=file, what="hook"))
except HookFailed:
    print("failed")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=45)
    assert (done.stdout, done.stderr) == ("failed\n", "")
