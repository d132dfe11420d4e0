"""LiteLLM's own proxy before a server of ours: three dialects go in, tools and cache marks come out."""

import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ra.core.value import JsonObject
from ra.providers.script import Call, Step
from ra.testing.server import LoopbackServer
from tests.cli.conftest import Shell

KEY = "sk-1234567890abcdef1234"
START_S = 120


def answer(body: JsonObject) -> Step:
    if "tool_result" in str(body["messages"]):
        return Step(text="One file.")
    return Step(calls=(Call("LS", {"path": "."}),))


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LoopbackServer, str]]:
    program = shutil.which("litellm")
    if program is None:
        pytest.skip("litellm is not installed")
    folder: Path = tmp_path_factory.mktemp("litellm")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with LoopbackServer("anthropic", answer) as models:
        model = {"model": "anthropic/claude-sonnet-4-6", "api_base": models.url, "api_key": "k"}
        config: dict[str, Any] = {"model_list": [{"model_name": "claude-sonnet-4-6", "litellm_params": model}]}
        (folder / "config.yaml").write_text(json.dumps(config))
        env = {"PATH": os.environ["PATH"], "HOME": str(folder), "LITELLM_MASTER_KEY": KEY}
        env |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}  # nothing is asked for on the network
        argv = [program, "--config", "config.yaml", "--host", "127.0.0.1", "--port", str(port)]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(argv, cwd=folder, env=env, stdout=log, stderr=log)
        try:
            deadline = time.monotonic() + START_S
            while not _listens(port):
                if process.poll() is not None or time.monotonic() > deadline:
                    pytest.skip(f"litellm does not start: {(folder / 'log').read_text()[-300:]}")
                time.sleep(0.2)
            yield models, f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(30)


@pytest.mark.parametrize(
    ("provider", "variable", "path"),
    [("openai-chat", "OPENAI", "/v1"), ("openai", "OPENAI", "/v1"), ("anthropic", "ANTHROPIC", "")],
)
def test_a_run_through_litellm_keeps_its_tools_and_its_cache_marks(
    shell: Shell, proxy: tuple[LoopbackServer, str], provider: str, variable: str, path: str
) -> None:
    models, url = proxy
    before = len(models.bodies)
    shell.env |= {f"{variable}_API_KEY": KEY, f"{variable}_BASE_URL": f"{url}{path}"}
    done = shell.ra("--provider", provider, "-m", "claude-sonnet-4-6", "What is here?")
    assert (done.returncode, done.stdout) == (0, b"One file.\n"), done.stderr
    bodies = models.bodies[before:]
    assert [len(body["messages"]) for body in bodies] == [1, 3]
    assert all(body["tools"] and json.dumps(body).count("cache_control") >= 2 for body in bodies)
