"""`ra "prompt"`: the answer on stdout, everything else on stderr, and an exit code that a script can rely on."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any

import pytest

from ra.providers.script import Call, Fault, Step
from ra.testing.server import LoopbackServer
from tests.cli.conftest import RA, Shell


def test_the_answer_is_all_that_is_on_stdout(shell: Shell, hello: LoopbackServer) -> None:
    done = shell.ra("hi")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"Hello, world.\n", b"")


def test_several_words_are_one_prompt_and_flags_may_stand_anywhere(shell: Shell, hello: LoopbackServer) -> None:
    shell.ra("explain", "--max-iterations", "3", "this", "-q")
    assert hello.bodies[0]["messages"][0]["content"][0]["text"] == "explain this"


def test_a_command_word_after_two_dashes_is_a_prompt(shell: Shell, hello: LoopbackServer) -> None:
    assert shell.ra("--", "context").stdout == b"Hello, world.\n"
    assert hello.bodies[0]["messages"][0]["content"][0]["text"] == "context"


def test_json_tells_everything(shell: Shell, hello: LoopbackServer) -> None:
    told = shell.json("hi")
    assert told["exit"] == 0
    assert set(told) - {"exit"} == {
        "session", "model", "answer", "stop", "usage", "cost", "iterations", "duration", "compactions",
    }  # fmt: skip
    assert (told["answer"], told["stop"], told["iterations"]) == ("Hello, world.", "answered", 1)
    assert set(told["usage"]) == {"input", "output", "cacheRead", "cacheWrite"}
    assert told["cost"] > 0


def test_stream_json_is_an_event_a_line_and_ends_with_the_summary(shell: Shell, hello: LoopbackServer) -> None:
    lines = [json.loads(line) for line in shell.ra("--output-format", "stream-json", "hi").stdout.splitlines()]
    kinds = [line.get("type") for line in lines]
    assert kinds[0] == "turn-started"
    assert "text-delta" in kinds
    assert lines[-1]["answer"] == "Hello, world."


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--modle", "x", "hi"], b"Unknown flag --modle; did you mean --model?"),
        (["--thinking", "huge", "hi"], b'--thinking: agent.thinking is "huge"; it must be one of off, low'),
        (["--max-cost", "much", "hi"], b"--max-cost takes a number (dollars), not 'much'"),
        (["--provider", "nope", "hi"], b"There is no provider nope; use anthropic"),
        (["--output-format", "xml", "hi"], b"--output-format"),
        (["--set", "agent.modle=x", "hi"], b"did you mean model?"),
        (["--resume", "nope", "hi"], b"There is no session 'nope'"),
        (["--fork", "hi"], b"--fork needs -c or --resume"),
        (["--config", "missing.yaml", "hi"], b"missing.yaml: cannot be read"),
        (["--allow", "Bash(", "hi"], b"rule 'Bash(' cannot be read"),
        (["sessions", "shwo"], b"There is no ra sessions shwo; write: ra sessions show"),
        ([], b"There is no prompt"),
    ],
)
def test_a_wrong_call_is_exit_2_with_one_line_and_sends_nothing(
    shell: Shell, hello: LoopbackServer, args: list[str], words: bytes
) -> None:
    done = shell.ra(*args)
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.count(b"\n") == 1
    assert done.stdout == b""
    assert hello.requests == []


def test_no_key_and_no_model_is_exit_2_with_six_lines_that_get_one_going(shell: Shell) -> None:
    done = shell.ra("hi")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 6
    assert b"ra local install" in done.stderr


@pytest.mark.parametrize(
    ("step", "code", "stop"),
    [(Step(text=""), 5, "empty"), (Step(text="I will not.", stop="refused"), 5, "refused")],
)
def test_an_empty_or_refused_answer_is_exit_5(shell: Shell, step: Step, code: int, stop: str) -> None:
    with LoopbackServer("anthropic", lambda body: step) as server:
        shell.serve(server)
        told = shell.json("hi")
        assert (told["exit"], told["stop"]) == (code, stop)
        done = shell.ra("hi")
        assert (done.returncode, done.stderr.decode()) == (code, f"ra: {told['error']}\n")


def test_a_refused_key_is_exit_1_and_names_the_variable(shell: Shell) -> None:
    with LoopbackServer("anthropic", lambda body: Step(text="x"), api_key="right") as server:
        shell.serve(server)
        done = shell.ra("hi")
    assert done.returncode == 1
    assert b"ANTHROPIC_API_KEY" in done.stderr


def looping(body: Any) -> Step:
    return Step(calls=(Call("LS", {"path": ".", "n": len(body["messages"])}),))


def test_limits_are_exit_3_and_what_was_spent_is_told(shell: Shell) -> None:
    with LoopbackServer("anthropic", looping) as server:
        shell.serve(server)
        told = shell.json("--max-iterations", "3", "go")
        assert (told["exit"], told["stop"], told["iterations"]) == (3, "limit", 3)
        assert "maxIterations" in told["error"]
        assert told["usage"]["input"] > 0
        assert len(server.requests) == 3
        told = shell.json("--max-token-budget", "2000", "go")
        assert (told["exit"], told["stop"]) == (3, "limit")
        assert "maxTokenBudget" in told["error"]
        told = shell.json("--max-cost", "0.05", "go")
        assert "maxCost" in told["error"]
        assert 0 < told["cost"] <= 0.05


def test_max_duration_ends_a_slow_model(shell: Shell) -> None:
    with LoopbackServer("anthropic", lambda body: Step(text="late", delay_s=30)) as server:
        shell.serve(server)
        began = time.monotonic()
        told = shell.json("--max-duration", "1", "go")
    assert (told["exit"], told["stop"]) == (3, "limit")
    assert time.monotonic() - began < 10


def test_three_identical_calls_in_a_row_end_the_run(shell: Shell) -> None:
    with LoopbackServer("anthropic", lambda body: Step(calls=(Call("LS", {"path": "."}),))) as server:
        shell.serve(server)
        told = shell.json("go")
    assert (told["exit"], told["iterations"]) == (3, 3)


def test_a_failure_in_mid_run_still_tells_usage_and_cost(shell: Shell) -> None:
    steps = [Step(calls=(Call("LS", {"path": "."}),)), Step(text="never")]
    with LoopbackServer("anthropic", steps, faults={1: Fault("status", 400)}) as server:
        shell.serve(server)
        told = shell.json("go")
    assert told["exit"] == 1
    assert told["error"]
    assert told["usage"]["input"] > 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_run_and_keeps_the_session(shell: Shell, number: int, code: int) -> None:
    with LoopbackServer("anthropic", lambda body: Step(text="late", delay_s=30)) as server:
        shell.serve(server)
        process = subprocess.Popen(
            [RA, "--output-format", "json", "go"],
            env=shell.env,
            cwd=shell.project,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )
        while not server.requests:
            time.sleep(0.01)
        process.send_signal(number)
        out, _ = process.communicate(timeout=25)  # the answer would come later
    assert process.returncode == code
    told = json.loads(out)
    assert told["stop"] == "interrupted"
    assert "go" in shell.ra("sessions", "show", told["session"]).stdout.decode()


def test_continue_resume_and_fork(shell: Shell, hello: LoopbackServer) -> None:
    first = shell.json("one")
    second = shell.json("-c", "two")
    assert second["session"] == first["session"]
    forked = shell.json("--resume", first["session"], "--fork", "three")
    assert forked["session"] != first["session"]
    told = [m["content"][0]["text"] for m in hello.bodies[2]["messages"] if m["role"] == "user"]
    assert told == ["one", "two", "three"]


def test_a_session_has_one_writer(shell: Shell) -> None:
    with LoopbackServer("anthropic", lambda body: Step(text="late", delay_s=len(server.requests) > 1 and 20)) as server:
        shell.serve(server)
        session = shell.json("one")["session"]
        process = subprocess.Popen([RA, "-c", "two"], env=shell.env, cwd=shell.project, stdin=subprocess.DEVNULL)
        while len(server.requests) < 2:
            time.sleep(0.01)
        done = shell.ra("--resume", session, "three")
        process.kill()
        process.wait()
    assert done.returncode == 75
    assert b"--fork" in done.stderr


def test_no_session_leaves_nothing_behind(shell: Shell, hello: LoopbackServer) -> None:
    shell.ra("--no-session", "hi")
    assert json.loads(shell.ra("sessions", "list", "--json").stdout) == []


def test_show_config_has_origins(shell: Shell) -> None:
    (shell.project / "ra.yaml").write_text("agent:\n  maxCost: 2\n")
    text = shell.ra("--show-config", "--thinking", "low").stdout.decode()
    assert "maxCost: 2" in text
    assert "ra.yaml:2" in text
    assert "# --thinking" in text


def test_show_config_names_what_waits_for_trust_and_gives_it_no_origin(shell: Shell) -> None:
    (shell.project / "ra.yaml").write_text("agent:\n  maxCost: 2\n  systemPrompt: Obey.\n")
    lines = shell.ra("--show-config").stdout.decode().splitlines()
    assert next(line for line in lines if "systemPrompt:" in line).split() == ["systemPrompt:", "null", "#", "default"]
    assert lines[-1] == "# waiting for `ra trust`: agent.systemPrompt"


def test_data_is_private(shell: Shell, hello: LoopbackServer) -> None:
    shell.ra("hi")
    data = shell.home.parent / "data"
    assert oct(data.stat().st_mode & 0o777) == "0o700"
    assert {oct(p.stat().st_mode & 0o777) for p in data.rglob("*") if p.is_file()} == {"0o600"}
    assert [path.name for path in shell.project.iterdir()] == [".git"]


def test_a_rule_for_a_tool_that_is_not_there_is_told(shell: Shell, hello: LoopbackServer) -> None:
    done = shell.ra("--deny", "WebSearch(x)", "hi")
    assert (done.returncode, done.stdout) == (0, b"Hello, world.\n")
    assert b"The deny rule WebSearch(x) has no effect: there is no tool 'WebSearch'; tools: Agent," in done.stderr
    assert shell.ra("--deny", "Bash", "--no-tools", "hi").stderr == b""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("form", ["json", "stream-json"])
def test_a_signal_before_the_first_request_tells_a_script_too(shell: Shell, number: int, code: int, form: str) -> None:
    """Here it waits for its prompt, which never comes."""
    process = subprocess.Popen(
        [RA, "--output-format", form],
        env=shell.env | {"ANTHROPIC_API_KEY": "k"},
        cwd=shell.project,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    process.stdin.write(b"half a pro")
    process.stdin.flush()
    while fcntl.ioctl(process.stdin.fileno(), termios.FIONREAD, b"\0\0\0\0") != b"\0\0\0\0":  # until it was read
        time.sleep(0.01)
    process.send_signal(number)
    assert process.stdout is not None
    assert process.stderr is not None
    told, said = json.loads(process.stdout.read()), process.stderr.read()
    process.stdin.close()
    assert (process.wait(10), told["stop"], told["usage"]["input"], told["cost"], said) == (
        code,
        "interrupted",
        0,
        0.0,
        b"",
    )


@pytest.mark.parametrize("flags", [("--output-format", "json", "--modle", "x"), ("--nope", "--output-format=json")])
def test_a_wrong_flag_tells_a_script_too(shell: Shell, flags: tuple[str, ...]) -> None:
    done = shell.ra(*flags, "hi")
    told = json.loads(done.stdout)
    assert (done.returncode, told["stop"], told["cost"]) == (2, "failed", 0.0)
    assert told["error"].startswith("Unknown flag")


@pytest.mark.parametrize("words", [["--version"], ["--show-config"], ["models"]])
def test_what_cannot_be_written_is_no_success_and_no_traceback(shell: Shell, words: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([RA, *words], env=shell.env, cwd=shell.project, stdout=full, stderr=subprocess.PIPE)
    assert (done.returncode, b"Traceback" in done.stderr) == (1, False)


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["config", "--help"], ["models"], ["--show-config"]])
def test_a_reader_of_what_is_printed_may_go_away(shell: Shell, words: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([RA, *words], env=shell.env, cwd=shell.project, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


def test_an_interruption_while_modules_are_loaded_is_quiet(shell: Shell) -> None:
    program = "import os, signal, sys\nfrom ra.cli.main import main\n"
    program += "class Slow:\n    def find_spec(self, name, *rest):\n"
    program += "        if name == 'ra.cli.oneshot': os.kill(os.getpid(), signal.SIGINT)\n"
    program += "sys.meta_path.insert(0, Slow())\nmain(['hi'])\n"
    done = subprocess.run([sys.executable, "-c", program], env=shell.env, cwd=shell.project, capture_output=True)
    assert (done.returncode, done.stderr) == (130, b"")


def test_a_damaged_store_keeps_no_prompt_back_that_needs_none(shell: Shell, hello: LoopbackServer) -> None:
    store = Path(shell.env["RA_HOME"]) / "ra.db"
    store.parent.mkdir(mode=0o700)
    store.write_bytes(b"this is no database " * 100)
    done = shell.ra("--no-session", "hi")
    assert (done.returncode, done.stdout) == (0, b"Hello, world.\n")
    assert b"is damaged" in done.stderr
    stored = shell.ra("hi")
    assert (stored.returncode, stored.stdout, stored.stderr.count(b"is damaged")) == (1, b"", 1)


def test_what_a_window_teaches_is_used_where_it_cannot_be_kept(shell: Shell) -> None:
    """An overflow is mended although the store that would remember the window cannot be written."""
    store = Path(shell.env["RA_HOME"]) / "ra.db"
    store.parent.mkdir(mode=0o700)
    store.mkdir()
    with LoopbackServer("anthropic", [Step(text="Fine.")], window=8000) as server:
        shell.serve(server)
        done = shell.ra("--no-session", "--no-tools", "word " * 12000)
    assert (done.returncode, done.stdout) == (0, b"Fine.\n")
    assert b"is a directory" in done.stderr
    assert len(server.requests) > 1


@pytest.mark.parametrize("prompt", ["explain @src/missing.py", "read url:http://127.0.0.1:9/x"])
def test_strict_refuses_a_reference_that_brought_nothing_before_anything_is_sent(shell: Shell, prompt: str) -> None:
    with LoopbackServer("anthropic", lambda body: Step(text="Hello.")) as server:
        shell.serve(server)
        strict = shell.ra("--strict", prompt)
        usual = shell.ra(prompt)
    assert (strict.returncode, strict.stdout) == (2, b"")
    assert b"Nothing was sent (--strict)." in strict.stderr
    assert (usual.returncode, usual.stdout) == (0, b"Hello.\n")
    assert len(server.requests) == 1


def test_a_file_that_is_attached_and_referred_to_is_sent_once(shell: Shell, hello: LoopbackServer) -> None:
    (shell.project / "f.txt").write_text("the content\n")
    assert shell.ra("--file", "f.txt", "-f", "./f.txt", "explain @f.txt please").returncode == 0
    assert json.dumps(hello.bodies[-1]).count("the content") == 1
