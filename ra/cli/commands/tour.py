"""`ra tour`: the real program in a scratch project, with a recorded model."""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from ra.app import App, open_store
from ra.cli import flags
from ra.cli.commands import CommandContext
from ra.cli.configuration import options, read_config
from ra.cli.permission_prompt import choose_on_terminal
from ra.cli.repl import Commands
from ra.cli.repl.complete import Completions
from ra.cli.repl.core import Repl
from ra.cli.repl.guide import Guided, Played
from ra.cli.repl.terminal import Terminal
from ra.cli.repl.tour_script import (
    ANSWERS,
    ANSWERS_AFTER,
    CLOSING,
    FILES,
    LOG,
    MODEL,
    MORNING,
    OPENING,
    STEPS,
    STEPS_AFTER,
    log,
)
from ra.core.facts import Checkpointed
from ra.providers import local

app = typer.Typer(add_completion=False, help="See what ra does in two minutes. No key, no network, no cost.")

WINDOW = 20_000  # tokens; small enough to fill up
TRACE = Path("docs/traces/demo.jsonl")
WIDTH = 78  # columns of what the tour says
KILLED = -signal.SIGKILL
MAIN = "from ra.cli.main import main; main()"


@app.command()
def tour(
    ctx: typer.Context,
    play: Annotated[bool, typer.Option("--play", help="play by itself, without waiting for keys")] = False,
    stage: Annotated[int, typer.Option("--stage", hidden=True)] = 0,
) -> int:
    """Watch ra work with a scripted model: it reads, edits, compacts at a price, recalls, and survives a crash."""
    call: CommandContext = ctx.obj
    if stage:
        return asyncio.run(_stage(call, stage, play=play))
    if not play and not (sys.stdin.isatty() and call.streams.out_tty):
        play = True  # nobody can press a key
    with tempfile.TemporaryDirectory(prefix="ra-tour-") as folder:
        project = _project(Path(folder))
        _say(call, OPENING.format(folder=project, model=MODEL))
        first = _run(project, 1, play=play)
        if first == KILLED:
            call.streams.out("\nKilled, with no time to save anything. Now continue:\n$ ra -c\n")
            _script(project, ANSWERS_AFTER)
            _run(project, 2, play=play)
        if first in (0, KILLED):
            _say(call, _closing(call, project))
    _embedded(call)
    _your_own(call, play=play)
    return 0


def _say(call: CommandContext, text: str) -> None:
    """Lines are broken between words. A path or a command that is longer than the terminal stays in one piece."""
    width = min(shutil.get_terminal_size().columns, WIDTH)
    for line in text.splitlines():
        broken = textwrap.fill(
            line,
            width,
            subsequent_indent="  " if line.startswith("- ") else "",
            break_long_words=False,
            break_on_hyphens=False,
        )
        call.streams.out(broken + "\n")


def _project(folder: Path) -> Path:
    project = folder / "shop"
    project.mkdir()
    (project / ".git").mkdir()
    (project / ".git/HEAD").write_text("ref: refs/heads/main\n")
    for name, text in FILES.items():
        (project / name).write_text(text)
    (project / LOG).write_text(log())
    _script(project, ANSWERS)
    return project


def _script(project: Path, answers: list[dict[str, object]]) -> None:
    (project / MODEL).write_bytes(msgspec.json.encode(answers))  # JSON is valid YAML


def _run(project: Path, stage: int, *, play: bool) -> int:
    """Runs a stage in a child process, because it gets killed. Restores the terminal afterwards."""
    words = ["tour", "--stage", str(stage), *(["--play"] if play else [])]
    env = os.environ | {"RA_HOME": str(project.parent / "data")}
    with _terminal_as_before():
        return subprocess.run([sys.executable, "-c", MAIN, *words], cwd=project, env=env, check=False).returncode


@contextlib.contextmanager
def _terminal_as_before() -> Iterator[None]:
    """Restores the terminal, which a killed process leaves raw. Ctrl-C belongs to the child."""
    import termios  # missing on Windows, where the tour kills nothing with -9

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    modes = termios.tcgetattr(0) if sys.stdin.isatty() else None
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if modes is not None:
            termios.tcsetattr(0, termios.TCSADRAIN, modes)
            sys.stdout.write("\x1b[?2004l\x1b[?25h\x1b[0m\r\x1b[J")
            sys.stdout.flush()


async def _stage(call: CommandContext, stage: int, *, play: bool) -> int:
    steps = STEPS if stage == 1 else STEPS_AFTER
    words = [
        "--provider",
        "scripted",
        "-m",
        MODEL,
        "--edits",
        "ask",
        "--set",
        f"agent.compaction.contextWindow={WINDOW}",
    ]
    args = flags.parse([*words, *(["-c"] if stage == 2 else [])])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    resolved = read_config(args, call.env)
    opened = App(
        resolved, msgspec.structs.replace(options(args, call.streams), terminal=True), env=call.env, warn=call.warn
    )
    completions = Completions(opened)
    inner: Terminal
    if play:
        inner = Played(steps, plain=not call.streams.colour)
    else:
        from ra.cli.repl.live import Live  # start-up time: prompt_toolkit, only for a terminal

        history = resolved.data_dir / "history"
        inner = Live(term=call.env.get("TERM", ""), colour=call.streams.colour, history=history, completer=completions)
    repl = Repl(opened, args, call.streams, Guided(inner, steps), Commands())
    completions.repl = repl
    return await repl.main()


def _closing(call: CommandContext, project: Path) -> str:
    """What the compaction really did, from the timeline."""
    env = dict(call.env) | {"RA_HOME": str(project.parent / "data")}
    resolved = read_config(flags.parse([]), env)
    store = open_store(resolved)
    latest = store.latest(str(project))
    facts = [event.fact for event in store.open(latest, write=False).events()] if latest else []
    cut = next((fact for fact in facts if isinstance(fact, Checkpointed)), None)
    store.close()
    return CLOSING.format(before=f"{cut.before:,}", after=f"{cut.after:,}") if cut is not None else ""


def _embedded(call: CommandContext) -> None:
    """Asks the embedded model one question, if it is installed: the tour downloads nothing."""
    if not local.available(call.resolved.data_dir):
        _say(call, "The embedded model is not installed (ra local install: 98 MB, free, on this machine).\n")
        return
    question = "What is the capital of France?"
    call.streams.out(
        f'\nThe embedded model is tiny, free, and runs on this machine:\n$ ra --provider local "{question}"\n'
    )
    words = ["--provider", "local", "--no-session", "--no-tools", question]
    subprocess.run([sys.executable, "-c", MAIN, *words], check=False)


def _your_own(call: CommandContext, *, play: bool) -> None:
    """What the last month would have cost under `auto`, from local transcripts; without any, from the included one."""
    home = Path(call.env.get("HOME", "~")).expanduser()
    folders = [folder for name in (".claude/projects", ".codex/sessions") if (folder := home / name).is_dir()]
    question = (
        "\nWhat would your last month of Claude Code or Codex have cost with --compaction auto? Nothing leaves this "
        "machine."
    )
    if folders and not play and choose_on_terminal(question, {"n": "no", "y": "show"}, call.streams) == "y":
        _bench(_recent(folders))
    elif not folders and TRACE.is_file():
        _say(call, _recorded_morning())


def _recorded_morning() -> str:
    """Two figures of `ra bench context`. Its table is for those who look for one."""
    words = ["bench", "context", "--json", "--strategies", "nothing,auto", "--trace", str(TRACE)]
    trace = json.loads(subprocess.run([sys.executable, "-c", MAIN, *words], stdout=subprocess.PIPE, check=True).stdout)
    costs = {row["strategy"]: row["cost"] for row in trace["traces"][0]["rows"]}
    return MORNING.format(calls=trace["traces"][0]["calls"], nothing=costs["nothing"], auto=costs["auto"])


def _recent(folders: list[Path]) -> list[Path]:
    """The largest transcripts of the last 30 days, few enough to replay in a minute."""
    import time

    month = time.time() - 30 * 86400
    files = [file for folder in folders for file in folder.rglob("*.jsonl") if file.stat().st_mtime > month]
    return sorted(files, key=lambda file: -file.stat().st_size)[:5]


def _bench(files: list[Path]) -> None:
    words = ["bench", "context", *(word for file in files for word in ("--trace", str(file)))]
    subprocess.run([sys.executable, "-c", MAIN, *words], check=False)
