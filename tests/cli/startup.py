"""What has Python imported when the first request goes out? Read from `-X importtime` at that very moment."""

import os
import subprocess
import sys
from pathlib import Path

from ra.core.value import JsonObject
from ra.providers.script import Step
from ra.testing.server import LoopbackServer

HELD = Path(__file__).with_name("first_request.txt")


def imported_before_first_request(folder: Path) -> list[str]:
    """Names of modules, in a project without configuration, with a key and a prompt of one word."""
    log, seen = folder / "imports", []

    def answer(_: JsonObject) -> Step:
        seen.append(log.read_text())
        return Step(text="Hello.")

    with LoopbackServer("anthropic", answer) as server, log.open("wb") as stderr:
        env = {"PATH": os.environ["PATH"], "HOME": str(folder), "RA_HOME": str(folder / "data")}
        env |= {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "k"}
        command = [sys.executable, "-X", "importtime", "-m", "ra", "hi"]
        subprocess.run(
            command,
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            check=True,
            timeout=60,
        )
    rows = [line.rpartition("|")[2].strip() for line in seen[0].splitlines() if line.startswith("import time:")]
    return sorted({row for row in rows if row != "imported package"})


def ours_and_foreign(modules: list[str]) -> list[str]:
    """Without the standard library, whose inner modules (`org` is Jython's, looked for) differ between Pythons."""
    known = sys.stdlib_module_names | {"sitecustomize", "usercustomize", "org"}
    return [name for name in modules if name.partition(".")[0] not in known and not name.startswith("_")]
