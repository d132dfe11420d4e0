"""The documentation tells the truth: generated parts are fresh, blocks print what they say, links lead somewhere."""

import re
import shutil
from pathlib import Path

import pytest

from ra.cli.flags import COMMANDS
from ra.config import reference as keys
from tests import pages
from tests.regenerate import GENERATED

RUN = [page for page in pages.PAGES if pages.blocks(page.read_text())]
LINKED = [*pages.PAGES, *(pages.ROOT / name for name in ("AGENTS.md", "CHANGELOG.md", "SECURITY.md"))]


@pytest.mark.parametrize("name", GENERATED)
def test_what_is_generated_is_fresh(name: str) -> None:
    assert (pages.ROOT / name).read_text() == GENERATED[name](), "run python -m tests.regenerate"


def test_every_command_is_documented() -> None:
    headings = re.findall(r"^## ra (\w+)$", (pages.ROOT / "docs/commands.md").read_text(), re.M)
    assert headings == list(COMMANDS)


def test_every_key_is_explained() -> None:
    assert [".".join(path) for path, _, _ in keys.leaves() if not keys.explained(path)] == []


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.name)
def test_what_a_page_shows_is_what_is_printed(page: Path) -> None:
    text = page.read_text()
    if "sandbox   bubblewrap" in text and not shutil.which("bwrap"):
        pytest.skip("the page shows a machine that has bubblewrap")
    assert pages.replayed(text) == text, "run python -m tests.regenerate"


@pytest.mark.parametrize("page", LINKED, ids=lambda page: page.name)
def test_relative_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```$|`[^`\n]*`", "", page.read_text(), flags=re.M | re.S)
    dead = []
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file)):
            dead.append(target)
    assert dead == []


def anchors(page: Path) -> set[str]:
    """What headings are called in links."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
