#!/usr/bin/env bash
# `make demo`: an answer and a bench table, with no key and no set-up.
set -euo pipefail
bin="$(cd "${1:-.venv/bin}" && pwd)"
cd "$(dirname "$0")/.."
run() { printf '\n$ %s\n' "$*"; PATH="$bin:$PATH" "$@"; }

PATH="$bin:$PATH" ra local status >/dev/null 2>&1 || run ra local install
printf '\n$ ra --provider local "What is the capital of France?"\n'
PATH="$bin:$PATH" ra --provider local "What is the capital of France?"
printf '\n$ git log --oneline -3 | ra --provider local "Say in one sentence what this text is."\n'
{ git log --oneline -3 2>/dev/null || echo "a list of changes"; } | PATH="$bin:$PATH" ra --provider local "Say in one sentence what this text is."
run ra context
run ra bench context --trace docs/traces/demo.jsonl
cat <<'NEXT'

That was the embedded model, and a recorded session under every strategy. What next:
  .venv/bin/ra                          talk to it; /help lists what you can do, Ctrl-D leaves
  export ANTHROPIC_API_KEY=...          a real model (or OPENAI_API_KEY, GEMINI_API_KEY); then ask again
  export PATH="$PWD/.venv/bin:$PATH"    so that `ra` is enough
  docs/quickstart.md                    goes on from here
NEXT
