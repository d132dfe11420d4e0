"""Does `ra serve` answer as its OpenAPI document says? schemathesis asks; what it finds is a defect here or there."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.server.conftest import Daemon

SCHEMATHESIS = Path(sys.executable).with_name("st")
EXAMPLES = 6
CONFIGURATION = """\
[checks]
# 422 is documented for what no schema can say: a key that was used before.
positive_data_acceptance.expected-statuses = ["2xx", "401", "403", "404", "409", "422", "429", "5xx"]
# DELETE /runs/{id} ends a run; what became of it can still be read.
use_after_free.enabled = false

[[operations]]
include-path = "/v1/chat/completions"
# As OpenAI's own: 400 also for messages without one of the user's, and for parts that are no text.
checks.positive_data_acceptance.enabled = false
"""


@pytest.mark.timeout(300)
def test_the_server_keeps_its_document(greeter: Daemon, tmp_path: Path) -> None:
    (tmp_path / "schemathesis.toml").write_text(CONFIGURATION)
    words = [SCHEMATHESIS, "run", f"{greeter.url}/openapi.json", "--phases", "coverage,fuzzing,stateful",
             "--max-examples", str(EXAMPLES), "--generation-deterministic", "--no-shrink", "--request-timeout", "60",
             "--workers", "1", "--suppress-health-check", "all"]  # fmt: skip
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
