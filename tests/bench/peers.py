"""Measures other agents beside ra, in one run, against the same loopback server: start to first request, and its size.

    python -m tests.bench.peers [RUNS]

Each agent that is found on PATH is started in an empty project with an empty home and asked one prompt, in turn, so
that a busy moment hits all of them. The figures of docs/comparison.md come from here.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from ra.context.tokens import Estimator
from ra.providers.script import Step
from ra.testing.server import DialectName, LoopbackServer

PROMPT = "say hello"


class Peer(NamedTuple):
    """How an agent is started: its program, the wire that it speaks, and what makes it call our server."""

    program: str
    dialect: DialectName
    command: Callable[[Path, str], list[str]]
    env: Callable[[Path, str], dict[str, str]]


def _pi(home: Path, url: str) -> list[str]:
    folder = home / ".pi/agent"
    folder.mkdir(parents=True, exist_ok=True)
    model = {"id": "claude-x", "name": "x", "reasoning": False, "input": ["text"], "contextWindow": 200000}
    model |= {"maxTokens": 8000, "cost": {"input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0}}
    provider = {"baseUrl": url, "apiKey": "k", "api": "anthropic-messages", "models": [model]}
    (folder / "models.json").write_text(json.dumps({"providers": {"loop": provider}}))
    return ["--offline", "--provider", "loop", "--model", "claude-x", "-p", PROMPT]


def _codex(home: Path, url: str) -> list[str]:
    settings = {
        "model_provider": '"loop"',
        "model": '"gpt-5.2"',
        "model_providers.loop": f'{{name="loop",base_url="{url}",env_key="LOOP_KEY",wire_api="responses"}}',
    }
    flags = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
    return ["exec", "--skip-git-repo-check", *flags, PROMPT]


def _opencode(home: Path, url: str) -> list[str]:
    provider = {"options": {"baseURL": f"{url}/v1", "apiKey": "k"}}
    settings = {"model": "anthropic/claude-sonnet-4-5", "provider": {"anthropic": provider}, "autoupdate": False}
    (home / "project/opencode.json").write_text(json.dumps(settings))
    return ["run", PROMPT]


def _anthropic(home: Path, url: str) -> dict[str, str]:
    return {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "k"}


def _openai(home: Path, url: str) -> dict[str, str]:
    return {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "k", "LOOP_KEY": "k"}


def _quiet(home: Path, url: str) -> dict[str, str]:
    return _anthropic(home, url) | {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1"}


def _llm(home: Path, url: str) -> list[str]:
    folder = home / ".config/io.datasette.llm"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "extra-openai-models.yaml").write_text(f"- {{model_id: loop, model_name: loop, api_base: '{url}'}}\n")
    return ["-m", "loop", "--key", "k", PROMPT]


def _aider(home: Path, url: str) -> list[str]:
    quiet = ["--no-git", "--yes-always", "--no-check-update", "--analytics-disable", "--no-show-model-warnings"]
    return ["--model", "openai/loop", "--openai-api-base", url, "--openai-api-key", "k", *quiet, "--message", PROMPT]


PEERS = (
    Peer("ra", "anthropic", lambda home, url: [PROMPT], _anthropic),
    Peer("claude", "anthropic", lambda home, url: ["-p", PROMPT], _quiet),
    Peer("codex", "openai", _codex, _openai),
    Peer("pi", "anthropic", _pi, _anthropic),
    Peer("opencode", "anthropic", _opencode, _anthropic),
    Peer("aider", "openai-chat", _aider, _openai),
    Peer("llm", "openai-chat", _llm, _openai),
)


class Measured(NamedTuple):
    seconds: float
    tokens: int


def measure(peer: Peer) -> Measured | None:
    """None when it sent nothing to the model."""
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        LoopbackServer(peer.dialect, lambda body: Step(text="Hello.")) as server,
    ):
        home = Path(folder)
        (home / "project").mkdir()
        env = {"PATH": os.environ["PATH"], "HOME": folder, "RA_HOME": f"{folder}/ra", "LANG": "C.UTF-8"}
        command = [peer.program, *peer.command(home, server.url)]
        began = time.monotonic()
        try:
            subprocess.run(
                command,
                cwd=home / "project",
                env=env | peer.env(home, server.url),
                capture_output=True,
                stdin=subprocess.DEVNULL,
                timeout=60,
            )
        except subprocess.TimeoutExpired:
            print(f"  {peer.program} did not end within 60 s", file=sys.stderr)
        asked = [request for request in server.requests if PROMPT in json.dumps(request.body)]
        if not asked:
            return None
        # Some ask for a title first; the request that carries the work is the one with tools.
        working = next((request for request in asked if request.body.get("tools")), asked[0])
        return Measured(working.at - began, size(working.body))


def size(body: dict[str, Any]) -> int:
    """The request in tokens of o200k_base, so that all are counted alike."""
    keys = ("system", "instructions", "messages", "input", "tools")
    return Estimator().text(json.dumps({key: body[key] for key in keys if key in body}, ensure_ascii=False))


def main(runs: int) -> None:
    found = [peer for peer in PEERS if shutil.which(peer.program)]
    figures: dict[str, list[Measured]] = {peer.program: [] for peer in found}
    for peer in found:
        measure(peer)  # once for the file cache
    for _ in range(runs):
        for peer in found:
            if one_run := measure(peer):
                figures[peer.program].append(one_run)
    for peer in PEERS:
        measured = figures.get(peer.program)
        if not measured:
            print(f"{peer.program:10} {'sent nothing to the model' if measured == [] else 'not installed'}")
            continue
        seconds = statistics.median(each.seconds for each in measured)
        print(f"{peer.program:10} {seconds:6.3f} s to the first request of {measured[0].tokens:6,} tokens")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
