"""An agent in a notebook: real IPython where it is installed, and plain output elsewhere."""

import subprocess
import sys
from pathlib import Path

import pytest

from ra import Agent
from ra.providers.script import Step
from ra.testing import ScriptedProvider

PROGRAM = """
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from ra import Agent
from ra.testing import ScriptedProvider, Step

InteractiveShell.instance()
agent = Agent(provider=ScriptedProvider([Step(text="A **bold** answer.")]), save=False)
with capture_output() as captured:
    agent.show("hi")
print([output.data["text/markdown"] for output in captured.outputs])
"""


def scripted(folder: Path) -> Agent:
    env = {"HOME": str(folder), "RA_HOME": str(folder / "data"), "PATH": "/usr/bin:/bin"}
    return Agent(provider=ScriptedProvider([Step(text="A **bold** answer.")]), save=False, cwd=folder, env=env)


def test_elsewhere_an_answer_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    agent = scripted(tmp_path)
    agent.show("hi")
    assert capsys.readouterr().out == "A **bold** answer.\n"
    assert agent.ended is not None
    assert agent.ended.outcome == "answered"


def test_an_agent_shows_what_fills_its_window_and_names_cannot_break_out(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Prices are whole cents.")
    agent = scripted(tmp_path)
    page = agent._repr_html_()
    assert "AGENTS.md" in page
    assert "tokens</b>" in page
    agent.pin("<script>", "a note")
    assert "<script>" not in agent._repr_html_()


def test_in_ipython_an_answer_is_drawn_in_its_place(tmp_path: Path) -> None:
    pytest.importorskip("IPython", reason="IPython is not installed")
    env = {"HOME": str(tmp_path), "RA_HOME": str(tmp_path / "data"), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.stdout.strip().endswith("'A **bold** answer.']")
