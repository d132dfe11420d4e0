"""Can a model that only writes files in the project get something run outside the box? By whatever ra itself runs."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ra.providers.script import Call, Step
from ra.testing.server import LoopbackServer
from tests.cli.conftest import Shell

EVIL = "import os; open(os.environ['HOME'] + '/escaped', 'w')"


@pytest.fixture
def writing(model: Callable[..., LoopbackServer]) -> Callable[..., LoopbackServer]:
    """A model that writes a file, by Bash and by Write, in its first answers."""

    def start(path: str, text: str = EVIL) -> LoopbackServer:
        command = f"mkdir -p $(dirname {path}); cat > {path} <<'E'\n{text}\nE"
        return model(Step(calls=(Call("Bash", {"command": command}), Call("Write", {"path": path, "content": text}))))

    return start


def put(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".py").write_text(text)


def configure(file: Path, command: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"agent": {"middleware": {"afterLoopComplete": [{"shell": command}]}}}))


def escaped(shell: Shell) -> bool:
    return (Path(shell.env["HOME"]) / "escaped").exists()


@pytest.mark.parametrize("path", ["hooks/end.py", "hooks/shared.py", "hooks/json.py", "hooks/json/__init__.py"])
def test_not_by_what_a_hook_loads(shell: Shell, writing: Callable[..., LoopbackServer], path: str) -> None:
    put(shell.project, hooks__end="import json, shared", hooks__shared="")
    configure(shell.project / "ra.yaml", "python3 hooks/end.py")
    writing(path)
    assert shell.ra("--trust", "--write", "go").returncode == 0
    assert not escaped(shell)


def test_not_by_a_hook_that_the_users_own_file_names(shell: Shell, writing: Callable[..., LoopbackServer]) -> None:
    put(shell.project, hooks__end="")
    configure(Path(shell.env["HOME"]) / ".config/ra/ra.yaml", f"python3 {shell.project}/hooks/end.py")
    writing("hooks/end.py")
    assert shell.ra("--write", "go").returncode == 0
    assert not escaped(shell)


def test_not_by_the_configuration_that_a_flag_names(shell: Shell, writing: Callable[..., LoopbackServer]) -> None:
    team = shell.project / "team.yaml"
    team.write_text("agent: {thinking: off}\n")
    writing("team.yaml", json.dumps({"agent": {"middleware": {"onError": [{"shell": "true"}]}}}))
    assert shell.ra("--config", "team.yaml", "--write", "go").returncode == 0
    assert team.read_text() == "agent: {thinking: off}\n"


def test_not_by_an_agent_file_and_what_it_imports(shell: Shell, writing: Callable[..., LoopbackServer]) -> None:
    imports = "import sys; sys.path.insert(0, 'agents')\nimport tone\n"
    handler = "async def handler(ctx, wake):\n    await ctx.agent.run()\n"
    put(shell.project, agents__a=imports + handler, agents__tone="")
    writing("agents/tone.py")
    assert shell.ra("--agent-file", "agents/a.py", "--write", "go").returncode == 0
    assert (shell.project / "agents/tone.py").read_text() == ""


@pytest.mark.parametrize(
    ("setting", "path"),
    [
        ("[core]\n\thooksPath = .husky/_\n", ".husky/pre-commit"),
        ("[core]\n\thookspath = tools/hooks\n", "tools/hooks/pre-commit"),
        ("[include]\n\tpath = ../team.gitconfig\n", "team.gitconfig"),
        ('[filter "x"]\n\tclean = sh tools/clean.sh %f\n', "tools/clean.sh"),
        ('[diff "x"]\n\ttextconv = \\\n  "./tools/show text"\n[core]fsmonitor=tools/watch\n', "tools/watch"),
        ("[alias]\n\tst = !python3 tools/status.py\n[core]\n\teditor = vi\n", "tools/status.py"),
    ],
)
def test_not_by_what_the_repository_makes_git_run(
    shell: Shell, writing: Callable[..., LoopbackServer], setting: str, path: str
) -> None:
    (shell.project / ".git/config").write_text(setting)
    file = shell.project / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("as it was")
    writing(path)
    assert shell.ra("--write", "go").returncode == 0
    assert file.read_text() == "as it was"


@pytest.mark.parametrize("command", ["echo x >> {0}", "mkdir -p $(dirname {0}); echo x > {0}; mv {0} y; cp y {0}"])
def test_not_by_hooks_that_the_user_has_in_each_repository(shell: Shell, command: str) -> None:
    (shell.home / ".gitconfig").write_text("[core]\n\thooksPath = .githooks\n")
    (shell.project / ".git").mkdir(exist_ok=True)
    steps = [Step(calls=(Call("Bash", {"command": command.format(".githooks/pre-commit")}),))]
    with LoopbackServer("anthropic", lambda body: steps.pop(0) if steps else Step(text="done")) as server:
        shell.serve(server)
        shell.ra("go")
    assert not (shell.project / ".githooks/pre-commit").exists()


STARTED = {
    ".envrc": "source_env_if_exists ./tools/more.env\nexport A=1\n[ -f tools/b.sh ] && . tools/b.sh\nuse flake\n",
    "mise.toml": '[env]\n_.source = "tools/mise.sh"\n[tasks.test]\nrun = "python tools/free.py"\n',
}


@pytest.mark.parametrize("path", ["tools/more.env", "tools/b.sh", "tools/c.sh", "flake.nix", "tools/mise.sh"])
def test_not_by_what_direnv_and_mise_run(shell: Shell, path: str) -> None:
    put(shell.project, tools__free="")
    files = {**STARTED, "tools/b.sh": ". ./c.sh\n", **dict.fromkeys(("tools/c.sh", "tools/more.env"), "as it was")}
    for name, text in (files | dict.fromkeys(("flake.nix", "tools/mise.sh"), "as it was")).items():
        (shell.project / name).write_text(text)
    before = (shell.project / path).read_text()
    writes = f"echo x >> {path}; echo x > y; mv y {path}; echo x >> tools/free.py"
    steps = [Step(calls=(Call("Bash", {"command": writes}), Call("Write", {"path": path, "content": "x"})))]
    with LoopbackServer("anthropic", lambda body: steps.pop(0) if steps else Step(text="done")) as server:
        shell.serve(server)
        shell.ra("--write", "go")
    assert ((shell.project / path).read_text(), (shell.project / "tools/free.py").read_text()) == (before, "x\n")


@pytest.mark.parametrize("name", ["rg", "bwrap", "bash", "git"])
def test_not_by_a_program_in_an_environment_of_the_project(shell: Shell, name: str) -> None:
    programs = shell.project / ".venv/bin"
    programs.mkdir(parents=True)
    plant = f"printf '#!/bin/sh\\n: > {shell.home}/escaped\\n' > .venv/bin/{name}; chmod +x .venv/bin/{name}"
    calls = (("Bash", {"command": plant}), ("Grep", {"pattern": "x"}), ("Bash", {"command": "git status"}))
    steps = [Step(calls=(Call(tool, args),)) for tool, args in calls]
    with LoopbackServer("anthropic", lambda body: steps.pop(0) if steps else Step(text="done")) as server:
        shell.serve(server)
        shell.env["PATH"] = f"{programs}:{shell.env['PATH']}"
        assert shell.ra("--allow", "Bash(git status:*)", "go").returncode == 0
    assert not escaped(shell)


def test_a_file_that_nothing_runs_is_the_models_to_write(shell: Shell, writing: Callable[..., LoopbackServer]) -> None:
    put(shell.project, hooks__end="import json")
    configure(shell.project / "ra.yaml", "python3 hooks/end.py")
    writing("src/main.py")
    assert shell.ra("--trust", "--write", "go").returncode == 0
    assert (shell.project / "src/main.py").read_text() == EVIL
