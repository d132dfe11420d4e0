"""Answers without a key: llama.cpp in this process, called like any other server."""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import aclosing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ra.core.errors import UserError
from ra.core.events import Streamed
from ra.core.model import ModelInfo, Request
from ra.providers import local_weights
from ra.providers.client import WireProvider
from ra.providers.dialects import openai_chat
from ra.providers.transports.http import HttpTransport
from ra.system.files import open_resolved

MODEL = "SmolLM2-135M-Instruct"
WINDOW = 8192
MAX_OUTPUT = 1024
NOTICE = (
    f"Answering with the embedded {MODEL}: a tiny model for short text, without tools, with a window of 8k tokens. "
    "Set a provider's API key for real work."
)
"""The notice that a face shows, in one line, at the first use of the embedded model."""


def info(model: str) -> ModelInfo:
    """The properties of a local model. The embedded one cannot call tools; other GGUF files are assumed to."""
    if _is_ours(model):
        return ModelInfo(MODEL, WINDOW, MAX_OUTPUT, "none", 1.15, tools=False)
    return ModelInfo(model, WINDOW, MAX_OUTPUT)


def available(data_dir: Path) -> bool:
    """Whether the embedded model can answer now."""
    return local_weights.installed(data_dir) and find_spec("xllamacpp") is not None


def weights(model: str | None, data_dir: Path) -> Path:
    """The file of a model: the embedded one, or the path of any other GGUF. Raises UserError."""
    if model is None or _is_ours(model):
        if not local_weights.installed(data_dir):
            raise UserError("The embedded model is not installed; run `ra local install` (98 MB, once).")
        return local_weights.path(data_dir)
    file = Path(model).expanduser()
    try:
        with open_resolved(file) as source:
            magic = source.read(4)
    except OSError as error:
        raise UserError(
            f"The local model {model!r} cannot be read ({error.strerror}); "
            f"give the path of a .gguf file, or leave --model out for {MODEL}."
        ) from error
    if magic != b"GGUF":
        raise UserError(f"{model!r} is not a GGUF file; the local provider runs models in that format only.")
    return file


def notice(data_dir: Path) -> str:
    """The notice for the first use of the embedded model; empty from then on."""
    notice_file = local_weights.path(data_dir).with_suffix(".told")
    if notice_file.exists():
        return ""
    try:
        notice_file.touch(mode=0o600)
    except OSError:
        return NOTICE  # the folder is read-only: the notice will be shown again next time
    return NOTICE


class LocalProvider:
    """A Provider whose server runs in this process, on a loopback port, protected by a random key.

    It starts with the first request; loading the embedded model takes 0.8 s, during which xllamacpp holds the GIL.
    """

    name = "local"

    def __init__(self, gguf: Path, *, timeout_s: float = 600) -> None:
        self._gguf = gguf
        self._timeout_s = timeout_s
        self._starting = asyncio.Lock()
        self._running: LoadedModel | None = None

    async def stream(self, request: Request) -> AsyncGenerator[Streamed, None]:
        running = await self.start()
        async with aclosing(running.provider.stream(request)) as items:
            async for item in items:
                yield item

    async def start(self) -> "LoadedModel":
        """Loads the model unless it is already loaded. Raises UserError if llama.cpp cannot use the file."""
        async with self._starting:
            if self._running is None:
                self._running = await asyncio.to_thread(_run, self._gguf, self._timeout_s)
            return self._running

    async def close(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            await running.provider.close()
            await asyncio.to_thread(running.stop)


class LoadedModel:
    """A loaded model: its address, and our client for it."""

    def __init__(self, server: Any, key: str, timeout_s: float) -> None:
        self._server = server  # its threads end with this last reference
        self.url: str = server.listening_address
        self.key = key
        transport = HttpTransport(self.url, api_key=key, timeout_s=timeout_s)
        self.provider = WireProvider(openai_chat, transport, info, timeout_s=timeout_s)

    def stop(self) -> None:
        self._server = None


def _run(gguf: Path, timeout_s: float) -> LoadedModel:
    import secrets

    try:
        import xllamacpp  # start-up time: 34 MB of native code, only for this provider
    except ImportError as error:
        raise UserError(
            f"The local provider needs the package xllamacpp, which cannot be loaded ({error}): pip install xllamacpp"
        ) from error

    key = secrets.token_hex(16)
    params = xllamacpp.CommonParams()
    params.model.path = str(gguf)
    params.n_ctx = WINDOW
    params.n_parallel = 1  # a second slot would halve the window
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [key]
    params.use_jinja = True
    params.ui = params.endpoint_slots = False
    # llama.cpp's threads spin while they wait for each other, which is slow if one shares its core with another
    # program: two threads on two busy cores gave 3 to 10 tokens a second, one thread 46. So one core stays free.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = max(1, (os.cpu_count() or 2) - 1)
    params.cache_ram_mib = 256  # the default keeps up to 8 GB of old prompts
    params.verbosity = -1  # nothing on our stdout and stderr
    if gguf.name == local_weights.FILE:
        # Such a small model rambles if it samples: its most likely token is its best.
        params.sampling.temp = 0.0
        params.sampling.penalty_repeat = 1.1
    try:
        return LoadedModel(xllamacpp.Server(params), key, timeout_s)
    except RuntimeError as error:
        raise UserError(f"llama.cpp cannot load {gguf}: {error}. Is the file complete, and GGUF?") from error


def _is_ours(model: str) -> bool:
    return model.lower() in (MODEL.lower(), "smollm2", "local", local_weights.FILE.lower())
