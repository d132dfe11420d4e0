#!/usr/bin/env bash
# `make wheel`: does the built wheel work outside the repository, in an environment that holds nothing else?
set -euo pipefail
bin="$(cd "$1" && pwd)"
wheel="$(realpath "$2")"
place="$(mktemp -d)"
trap 'rm -rf "$place"' EXIT
"$bin/python" -m venv "$place/env"
"$bin/uv" pip install --quiet --python "$place/env/bin/python" "$wheel"
cd "$place"
printf -- '- text: Hello from the wheel.\n' > script.yaml
export HOME="$place/home" RA_HOME="$place/data"
mkdir -p "$HOME"
env/bin/ra --version
env/bin/agentx --version
[ "$(env/bin/ra --provider scripted --model script.yaml hi </dev/null)" = "Hello from the wheel." ]
env/bin/ra context --json >/dev/null
echo "the wheel works"
