"""Registers `ra` as an entry point in the development environment, for tools that start programs by that name.

The installed `ra` is a shell script that starts Python isolated, so it has no entry point; profilers and tracers of our
own development look for one.
"""

import sysconfig
from pathlib import Path

FILES = {
    "METADATA": "Metadata-Version: 2.1\nName: ra-entry-point\nVersion: 0\n",
    "entry_points.txt": "[console_scripts]\nra = ra.cli.main:main\n",
    "INSTALLER": "make\n",
}


def main() -> None:
    folder = Path(sysconfig.get_path("purelib")) / "ra_entry_point-0.dist-info"
    folder.mkdir(exist_ok=True)
    for name, text in FILES.items():
        (folder / name).write_text(text)
    (folder / "RECORD").write_text("".join(f"{folder.name}/{name},,\n" for name in (*FILES, "RECORD")))


if __name__ == "__main__":
    main()
