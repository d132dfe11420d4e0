"""stub"""
from collections.abc import Sequence
from pathlib import Path


def has_articles(dirs: Sequence[Path]) -> bool:
    return any(next(folder.rglob("*.md"), None) is not None for folder in dirs)
