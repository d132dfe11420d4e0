"""What does a newcomer see who has no key and no model? The ways to get going, and an offer to take the shortest."""

import sys
from pathlib import Path

from ra.cli.ask import forget_typed_ahead
from ra.cli.output import Streams
from ra.providers import local_weights


def offer_local_model(words: str, data_dir: Path, streams: Streams) -> bool:
    """Say `words`, ask, and install the embedded model. False when the answer is no. Raises RaError."""
    forget_typed_ahead()
    answer = ""
    try:
        streams.err(f"{words}\nInstall the tiny model now? y/n: ")
        answer = sys.stdin.readline()
    finally:
        if not answer.endswith("\n"):  # Ctrl-C or Ctrl-D: the shell's prompt begins a line of its own
            streams.err("\n")
    if answer.strip().lower()[:1] != "y":
        return False
    local_weights.install(data_dir, lambda text: streams.err(f"{text}\n"))
    return True
