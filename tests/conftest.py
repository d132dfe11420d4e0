"""What all tests share: how Hypothesis searches, an environment without the developer's keys, a worker for plugins."""

import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

from ra.system import plugins
from tests.postgres import postgres  # noqa: F401 - a fixture of all packages

# CI repeats itself, so that a change is judged by what it changed; on a developer's machine every run looks elsewhere.
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("dev", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "dev")

SECRETS = ("ANTHROPIC_", "OPENAI_", "GEMINI_", "GOOGLE_", "AWS_", "AZURE_", "RA_HOME", "XDG_")


@pytest.fixture(autouse=True, scope="session")
def _signals_are_heard() -> None:
    """A runner under nohup ignores SIGHUP, one behind a script's `&` SIGINT, and with it what a test starts."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="session")
def _no_keys_of_the_developer() -> None:
    for name in [name for name in os.environ if name.startswith(SECRETS)]:
        del os.environ[name]


@pytest.fixture
def worker() -> Iterator[plugins.Worker]:
    """What runs the code of plugins; its thread ends with the test."""
    worker = plugins.Worker()
    yield worker
    worker.close()
