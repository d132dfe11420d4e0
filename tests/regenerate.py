"""`python -m tests.regenerate`: write anew what is generated from the program, in the docs and in the tests."""

import sys
import tempfile
from pathlib import Path

from ra.config import reference as keys
from tests import pages, reference, walk
from tests.cli import startup
from tests.web import declarations

GENERATED = {
    "ra.yaml.example": keys.example,
    "docs/configuration.md": reference.configuration,
    "docs/commands.md": reference.commands,
    "ra/cli/words.json": reference.words,
    "ra/web/page/types.d.ts": declarations.declarations,
}


ARCHITECTURE = "docs/architecture.md"


def write(path: Path, text: str) -> None:
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
        print(f"wrote {path.relative_to(pages.ROOT)}")


def main(chosen: list[str]) -> None:
    """Everything, or only the files that are named."""
    for name, make in GENERATED.items():
        if not chosen or name in chosen:
            write(pages.ROOT / name, make())
    if not chosen or ARCHITECTURE in chosen:
        write(pages.ROOT / ARCHITECTURE, walk.written((pages.ROOT / ARCHITECTURE).read_text()))
    for page in pages.PAGES:
        if pages.blocks(page.read_text()) and (not chosen or str(page.relative_to(pages.ROOT)) in chosen):
            write(page, pages.replayed(page.read_text()))
    if not chosen:
        with tempfile.TemporaryDirectory() as folder:
            loaded = startup.ours_and_foreign(startup.imported_before_first_request(Path(folder)))
            write(startup.HELD, "\n".join(loaded) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
