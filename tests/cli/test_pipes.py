"""ra between other programs: pipes, locales, colours, sizes, and streams that are closed or silent."""

import os
import resource
import subprocess
from functools import partial
from pathlib import Path

import pytest

from ra.core.model import Usage
from ra.providers.script import Step
from ra.testing.server import LoopbackServer
from tests.cli.conftest import RA, Shell


def texts(server: LoopbackServer, number: int = -1) -> list[str]:
    return [block["text"] for block in server.bodies[number]["messages"][0]["content"] if block["type"] == "text"]


def test_piped_text_is_a_block_of_its_own_after_the_prompt(shell: Shell, hello: LoopbackServer) -> None:
    assert shell.ra("review", stdin="diff --git a b\n").stdout == b"Hello, world.\n"
    assert texts(hello)[:2] == ["review", "<stdin>\ndiff --git a b\n</stdin>"]


def test_piped_text_alone_is_the_prompt(shell: Shell, hello: LoopbackServer) -> None:
    shell.ra(stdin="what is up?\n")
    assert texts(hello)[0] == "what is up?"


def test_references_in_piped_text_are_data(shell: Shell, hello: LoopbackServer) -> None:
    (shell.project / "secret.txt").write_text("TOP SECRET")
    shell.ra("look", stdin="@secret.txt @/etc/passwd url:http://127.0.0.1/x")
    assert "TOP SECRET" not in str(hello.bodies)
    assert "root:" not in str(hello.bodies)


def test_a_silent_stdin_does_not_hang_a_prompt(shell: Shell, hello: LoopbackServer) -> None:
    reading, writing = os.pipe()
    done = subprocess.run([RA, "hi"], stdin=reading, env=shell.env, cwd=shell.project, capture_output=True, timeout=30)
    os.close(writing)
    os.close(reading)
    assert done.stdout == b"Hello, world.\n"
    assert b"open but silent" in done.stderr


def test_a_closed_stdin_and_a_closed_stdout_do_no_harm(shell: Shell, hello: LoopbackServer) -> None:
    run = {"shell": True, "env": shell.env, "cwd": shell.project, "timeout": 30}
    assert subprocess.run(f"{RA} hi <&-", stdout=subprocess.PIPE, **run).stdout == b"Hello, world.\n"
    done = subprocess.run(f"{RA} hi >&- </dev/null", stderr=subprocess.PIPE, **run)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_reader_that_goes_away_ends_it_quietly(shell: Shell) -> None:
    with LoopbackServer("anthropic", lambda body: Step(text="line\n" * 100_000, usage=Usage(1000, 8000))) as server:
        shell.serve(server)
        command = f"set -o pipefail; {RA} hi </dev/null | head -1"
        done = subprocess.run(
            ["bash", "-c", command], env=shell.env, cwd=shell.project, capture_output=True, timeout=60
        )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"line\n", b"")


def test_a_full_disk_costs_the_session_and_not_the_answer(shell: Shell, hello: LoopbackServer) -> None:
    shell.ra("hi")
    limit = (shell.home.parent / "data/ra.db").stat().st_size // 2
    done = shell.ra("again", preexec_fn=partial(resource.setrlimit, resource.RLIMIT_FSIZE, (limit, limit)))

    assert (done.returncode, done.stdout) == (1, b"Hello, world.\n")
    assert "the session could not be saved" in done.stderr.decode()


def test_a_full_disk_behind_stdout_is_a_failure(shell: Shell, hello: LoopbackServer) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [RA, "hi"], stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE, env=shell.env, cwd=shell.project
        )
    assert done.returncode == 1
    assert b"could not be written" in done.stderr


@pytest.mark.parametrize("locale", ["C", "POSIX", "en_US.ISO-8859-1", "C.UTF-8"])
def test_text_is_utf8_in_every_locale(shell: Shell, locale: str) -> None:
    with LoopbackServer("anthropic", lambda body: Step(text="日本語 ✓ ß")) as server:
        shell.serve(server)
        done = shell.ra("grüße 🙂", stdin="ключ", env={"LC_ALL": locale, "LANG": locale})
    assert done.stdout.decode() == "日本語 ✓ ß\n"
    assert texts(server)[:2] == ["grüße 🙂", "<stdin>\nключ\n</stdin>"]


def test_bytes_that_are_no_text_become_replacement_characters(shell: Shell, hello: LoopbackServer) -> None:
    done = subprocess.run(
        [RA.encode(), b"caf\xe9 \xed\xa0\x80"],
        input=b"\xff\xfe\x00ok",
        env=shell.env,
        cwd=shell.project,
        capture_output=True,
        timeout=30,
    )
    assert done.returncode == 0
    assert texts(hello)[0].startswith("caf\ufffd")
    assert "ok" in texts(hello)[1]


def test_no_colour_codes_leave_a_pipe(shell: Shell, hello: LoopbackServer) -> None:
    done = shell.ra("-v", "hi")
    assert b"\x1b" not in done.stdout + done.stderr
    coloured = shell.ra("-v", "hi", env={"FORCE_COLOR": "1"})
    assert b"\x1b" not in coloured.stdout
    assert b"\x1b[2m" in coloured.stderr
    assert b"\x1b" not in shell.ra("-v", "hi", env={"FORCE_COLOR": "1", "NO_COLOR": "1"}).stderr


def test_a_prompt_of_five_megabytes_goes_through(shell: Shell) -> None:
    with LoopbackServer("anthropic", lambda body: Step(text="ok"), window=150_000) as server:
        shell.serve(server)
        done = shell.ra("summarise", stdin="lorem ipsum dolor sit amet, " * 190_000)
    assert (done.returncode, done.stdout) == (0, b"ok\n")


def test_two_of_them_in_a_row(shell: Shell, hello: LoopbackServer) -> None:
    command = f"echo diff | {RA} one | {RA} two > out"
    subprocess.run(["bash", "-c", command], env=shell.env, cwd=shell.project, check=True, timeout=60)
    assert (shell.project / "out").read_text() == "Hello, world.\n"
    assert texts(hello)[:2] == ["two", "<stdin>\nHello, world.\n</stdin>"]


def test_a_file_name_with_a_newline_is_read(shell: Shell, hello: LoopbackServer) -> None:
    (shell.project / "a\nb.txt").write_text("inside")
    done = shell.ra("-f", "a\nb.txt", "look")
    assert done.returncode == 0
    assert "inside" in str(hello.bodies)
