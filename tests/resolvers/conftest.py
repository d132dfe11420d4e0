"""A project to refer to."""

from pathlib import Path

import pytest

from tests.resolvers.prompts import PDF, PNG


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / ".git" / "info").mkdir(parents=True)
    files = {
        "README.md": "# Read me\n",
        "src/auth.ts": "export {}\n",
        "src/lines.py": "".join(f"line {n}\n" for n in range(1, 101)),
        "src/utils/a.ts": "a\n",
        "src/utils/b.ts": "b\n",
        "src/utils/c.js": "c\n",
        "src/utils/deep/d.ts": "d\n",
        "with spaces.txt": "spaces\n",
        "app/[id]/page.tsx": "page\n",
        "notes(1).md": "one\n",
        "文件.txt": "text\n",
        "empty.txt": "",
        ".hidden/secret.ts": "hidden\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "logo.png").write_bytes(PNG)
    (root / "paper.pdf").write_bytes(PDF)
    return root
