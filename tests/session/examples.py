"""The examples that the documentation shows are the ones that are tested."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs/strategies.md"


def example(name: str) -> str:
    found = re.search(rf"<!-- example: {name} -->\n```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found, f"{PAGE} shows no example named {name}"
    return found[1]
