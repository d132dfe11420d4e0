#!/usr/bin/env bash
# `make demo`: the tour, played by itself: about 20 seconds, no key, no network.
set -euo pipefail
bin="$(cd "${1:-.venv/bin}" && pwd)"
cd "$(dirname "$0")/.."
PATH="$bin:$PATH" ra tour --play
cat <<'NEXT'

That played by itself. To press the keys yourself:
  .venv/bin/ra tour                     the same, about two minutes
  .venv/bin/ra local install            a tiny model on this machine, free
  export PATH="$PWD/.venv/bin:$PATH"    so that `ra` is enough
  docs/quickstart.md                    goes on from here
NEXT
