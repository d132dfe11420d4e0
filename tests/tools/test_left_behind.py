"""Temporary folders of killed processes are removed by the next one that makes such a folder."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from ra.tools.sandbox.launch import private_folder, remove_left_behind

PROGRAM = """
import sys, time
from ra.tools.sandbox.launch import private_folder
class Owner: pass
owner = Owner()
print(private_folder(owner)[0], flush=True)
time.sleep(60)
"""


def test_what_a_killed_process_left_is_removed_and_what_a_living_one_holds_is_not(tmp_path: Path) -> None:
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    process = subprocess.Popen([sys.executable, "-c", PROGRAM], env=env, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    folder = Path(process.stdout.readline().strip())
    (folder / "file").write_text("x")
    remove_left_behind(str(tmp_path))
    assert folder.is_dir()
    process.send_signal(signal.SIGKILL)
    process.wait()
    remove_left_behind(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_held_yet_is_left_for_a_while(tmp_path: Path) -> None:
    folder = tmp_path / "ra-new-x"
    folder.mkdir()
    remove_left_behind(str(tmp_path))
    assert folder.is_dir()
    long_ago = time.time() - 3600
    os.utime(folder, (long_ago, long_ago))
    remove_left_behind(str(tmp_path))
    assert not folder.exists()


def test_a_folder_goes_with_its_owner() -> None:
    class Owner:
        pass

    owner = Owner()
    path, forget = private_folder(owner)
    assert Path(path).is_dir()
    forget()
    assert not Path(path).exists()
