"""What runs is what the user agreed to, also when a file changes while ra runs."""

from pathlib import Path

import pytest

from ra.config.load import resolve
from ra.config.trust import FILE, Trust
from ra.core.errors import UserError
from ra.system import plugins
from ra.system.agreed import Agreed, ChangedSinceAgreed, digest_of
from ra.system.launch import under_reaper

CONFIGURATION = """
agent:
  middleware: {beforeModelCall: [hooks/a.sh, hooks/b.py, {shell: "sh hooks/a.sh --x"}]}
  mcpServers: [{name: mine, command: sh, args: [hooks/a.sh, serve]}]
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "hooks").mkdir(parents=True)
    (root / ".git").mkdir()
    (root / "ra.yaml").write_text(CONFIGURATION)
    (root / "hooks/a.sh").write_text(". hooks/lib.sh\n")
    (root / "hooks/lib.sh").write_text("true\n")
    (root / "hooks/b.py").write_text("def before_model_call(ctx): ...\n")
    env = {"HOME": str(tmp_path / "home"), "RA_HOME": str(tmp_path / "data")}
    first = resolve(cwd=root, env=env)
    Trust(first.data_dir / FILE).record(first.root, first.items)
    assert resolve(cwd=root, env=env).untrusted == ()
    return root


@pytest.mark.parametrize("changed", ["a.sh", "lib.sh"])
def test_a_script_that_changed_after_the_configuration_was_read_does_not_start(project: Path, changed: str) -> None:
    script = str(project / "hooks/a.sh")
    commands = (["bash", script], ["/bin/sh", "-c", "sh hooks/a.sh --x"], ["sh", "./hooks/a.sh", "serve"])
    for argv in commands:
        under_reaper(argv, cwd=str(project))
    (project / "hooks" / changed).write_text("echo planted\n")
    for argv in commands:
        with pytest.raises(ChangedSinceAgreed, match="has changed since you agreed to it"):
            under_reaper(argv, cwd=str(project))
    under_reaper(["bash", "-c", "another"], cwd=str(project))


def test_python_that_changed_after_the_configuration_was_read_is_not_loaded(project: Path) -> None:
    assert plugins.load("hooks/b.py", base=project).before_model_call
    (project / "hooks/b.py").write_text("raise SystemExit('planted')\n")
    with pytest.raises(UserError, match="has changed since you agreed to it"):
        plugins.load("hooks/b.py", base=project)


def test_a_file_that_appears_is_a_change(tmp_path: Path) -> None:
    agreed, file = Agreed(), tmp_path / "lib.sh"
    agreed.register("run it", {str(file): digest_of(str(file))}, root="/p")
    agreed.check_command(["run it"], "/p")
    file.write_text("planted")
    with pytest.raises(ChangedSinceAgreed):
        agreed.check_command(["run it"], "/p")
