"""Opens sessions for tests: real parts against a loopback server, in a folder of the test.

with LoopbackServer("anthropic", [Step(text="Hello.")]) as server:
    session = ra.testing.session(tmp_path, server)
    run = session.prompt(say("user", "Hi"))
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ra.app import App, Providers
from ra.config.load import Resolved, resolve
from ra.config.options import Options
from ra.core.ports import Provider
from ra.providers.retry import Retries
from ra.providers.settings import ProviderName
from ra.session.session import Session
from ra.testing.server import LoopbackServer

MODELS = {"anthropic": "claude-sonnet-4-6", "openai": "gpt-5.2", "openai-chat": "llama-x", "google": "gemini-2.5-pro"}


class PatientProviders(Providers):
    """Connects providers with the retries that a test wants: without waiting, or none."""

    def __init__(self, resolved: Resolved, env: Mapping[str, str], retries: Retries | None) -> None:
        super().__init__(resolved, env)
        self._retries = retries

    def connect(self, provider: ProviderName, model: str, *, retries: Retries | None = None) -> Provider:
        return super().connect(provider, model, retries=retries or self._retries)


def app(
    folder: Path,
    server: LoopbackServer,
    dialect: str = "anthropic",
    *,
    retries: Retries | None = None,
    timeout_s: float = 60,
    options: Options | None = None,
    home: str = "data",
    providers: Callable[..., Providers] = PatientProviders,
    warn: Callable[[str], None] | None = None,
    **settings: Any,
) -> App:
    """The App for a project in `folder`.

    `settings` are keys of ra.yaml, below `agent` unless they begin with `session`; two underscores stand for a dot:
    `compaction__strategy="digest"`.
    """
    (folder / "project" / ".git").mkdir(parents=True, exist_ok=True)
    flags: Mapping[str, Any] = {
        "agent.provider": dialect,
        "agent.model": MODELS[dialect],
        f"app.providers.{dialect}": {"baseUrl": server.url, "apiKey": "k", "timeout": timeout_s},
    } | {("" if key.startswith("session__") else "agent.") + key.replace("__", "."): settings[key] for key in settings}
    env = {"HOME": str(folder / "home"), "RA_HOME": str(folder / home), "PATH": "/usr/bin:/bin"}
    resolved = resolve(
        cwd=(folder / "project").resolve(), env=env, flags={key: (value, "test") for key, value in flags.items()}
    )
    return App(
        resolved,
        options or Options(edits="auto"),
        env=env,
        warn=warn or _ignore,
        providers=providers(resolved, env, retries),
    )


def session(folder: Path, server: LoopbackServer, dialect: str = "anthropic", **options: Any) -> Session:
    """A new session of a project in `folder`, answered by `server`. `options` are those of `app`."""
    return app(folder, server, dialect, **options).open()


def _ignore(text: str) -> None:
    """Drops a warning; a test that needs warnings passes `warn`."""
