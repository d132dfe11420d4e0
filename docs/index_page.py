"""What a package index shows of `ra`: the README with links that work there, and the project's address.

Where the project lives is not written in the tree. `RA_PROJECT_URL` names it for a build; else the build takes the
clone's own `origin`. With neither, links into the tree become plain names and pictures go: a dead link helps nobody.
"""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?://|mailto:)([^)\s]+)\)")
_SSH = re.compile(r"^(?:ssh://)?(?:[\w.-]+@)([\w.-]+)[:/](?!/)(.+)$")


class IndexPage(MetadataHookInterface):
    """Run by the build: it fills in `readme` and `urls`, which pyproject.toml calls dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        root = Path(self.root)
        url = web_address(os.environ.get("RA_PROJECT_URL") or _origin(root))
        text = page((root / "README.md").read_text(encoding="utf-8"), url)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        metadata["urls"] = addresses(url)


def web_address(remote: str) -> str:
    """The page of a repository, from any form of its remote; "" where it is a folder of this machine."""
    remote = remote.strip().rstrip("/").removesuffix(".git")
    if ssh := _SSH.match(remote):
        remote = f"https://{ssh[1]}/{ssh[2]}"
    scheme, _, rest = remote.partition("://")
    return f"https://{rest.rpartition('@')[2]}" if scheme in ("http", "https") and rest else ""


def addresses(url: str) -> dict[str, str]:
    """The links beside a package on its index."""
    if not url:
        return {}
    pages = {"Documentation": "README.md", "Changelog": "CHANGELOG.md"}
    return {"Homepage": url, "Repository": url, **{name: f"{url}/blob/HEAD/{path}" for name, path in pages.items()}}


def page(readme: str, url: str) -> str:
    """The README as it can be read outside the tree."""

    def link(match: re.Match[str]) -> str:
        mark, name, path = match.groups()
        if path.startswith("#"):  # an index gives headings no anchors of its own
            path = f"README.md{path}"
        if url:
            return f"{mark}[{name}]({url}/{'raw' if mark else 'blob'}/HEAD/{path})"
        return "" if mark else name

    return _LINK.sub(link, readme)


def _origin(root: Path) -> str:
    if not (root / ".git").exists():  # a copy without history may lie inside somebody else's repository
        return ""
    command = ["git", "-C", str(root), "remote", "get-url", "origin"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except OSError:  # no git
        return ""
