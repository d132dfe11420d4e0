"""Shows new users without a key or model the ways to get started, and offers the quickest one."""

import sys
from pathlib import Path

import msgspec

from ra.cli.output import Streams
from ra.cli.permission_prompt import choose_on_terminal, forget_typed_ahead
from ra.core.text import visible_line
from ra.core.value import Value
from ra.providers import local_weights


class LocalServer(Value, frozen=True):
    """A model server that runs on this machine, and the first model in its list."""

    name: str
    url: str
    model: str


SERVERS = {"Ollama": 11434, "LM Studio": 1234, "llama.cpp": 8080}
PATIENCE_S = 0.3  # a server on this machine answers sooner


def offer_server(streams: Streams) -> LocalServer | None:
    """The first model server that runs here, if the user accepts it."""
    for name, port in SERVERS.items():
        url = f"http://127.0.0.1:{port}/v1"
        models = _models(port)
        if not models:
            continue
        listed = ", ".join(visible_line(model, 40) for model in models[:3]) + (" …" if len(models) > 3 else "")
        question = f"{name} runs on this machine ({listed}). Use {visible_line(models[0], 40)}?"
        if choose_on_terminal(question, {"n": "no", "y": "yes"}, streams) == "y":
            streams.err(f"For next time: export OPENAI_BASE_URL={url}, and ra -m {visible_line(models[0], 40)}\n")
            return LocalServer(name, url, models[0])
    return None


def _models(port: int) -> list[str]:
    """The models of a compatible server on this machine; none if it does not answer in time."""
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        connection.request("GET", "/v1/models")
        reply = connection.getresponse()
        listed = msgspec.json.decode(reply.read(1_000_000), type=_Models) if reply.status == 200 else _Models()
    except (OSError, http.client.HTTPException, msgspec.MsgspecError):
        return []
    finally:
        connection.close()
    return [model.id for model in listed.data if model.id]


class _Model(msgspec.Struct):
    id: str = ""


class _Models(msgspec.Struct):
    data: list[_Model] = []


def offer_local_model(words: str, data_dir: Path, streams: Streams) -> bool:
    """Says `words`, asks, and installs the embedded model. False if the answer is no. Raises RaError."""
    forget_typed_ahead()
    answer = ""
    try:
        streams.err(f"{words}\nInstall the tiny model now? y/n: ")
        answer = sys.stdin.readline()
    finally:
        if not answer.endswith("\n"):  # Ctrl-C or Ctrl-D: the shell's prompt needs a new line
            streams.err("\n")
    if answer.strip().lower()[:1] != "y":
        return False
    local_weights.install(data_dir, lambda text: streams.err(f"{text}\n"))
    return True
