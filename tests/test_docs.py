"""The documentation tells the truth: generated parts are fresh, blocks print what they say, links lead somewhere."""

import re
import shutil
from pathlib import Path

import pytest

from ra.cli.flags import COMMANDS
from ra.config import reference as keys
from tests import pages, walk
from tests.regenerate import ARCHITECTURE, GENERATED

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


def test_the_files_of_one_prompt_are_those_that_it_runs_through() -> None:
    page = (pages.ROOT / ARCHITECTURE).read_text()
    assert walk.written(page) == page, f"run python -m tests.regenerate {ARCHITECTURE}"


def test_each_kind_of_part_is_added_with_one_new_file_and_at_most_one_line_elsewhere() -> None:
    page = (pages.ROOT / "docs/architecture.md").read_text()
    toys = page.partition("## Toy examples\n")[2].partition("\n## ")[0].split("\n### ")[1:]
    sizes = {}
    for toy in toys:
        found = pages.blocks(toy)
        new = [block for block in found if block.kind.startswith(("python new", "python file"))]
        elsewhere = [line for block in found if "diff" in block.kind for line in re.findall(r"^\+", block.text, re.M)]
        sizes[toy.partition("\n")[0]] = (len(new), len(elsewhere))
    in_ra = ("A tool", "A command", "A provider", "A strategy", "A compaction", "A transcript format")
    assert sizes == dict.fromkeys(in_ra, (1, 1)) | dict.fromkeys(("A source", "A hook"), (1, 0))


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
