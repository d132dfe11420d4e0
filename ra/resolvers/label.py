"""Wrap attached text in a tag that the text itself cannot close."""

import hashlib
import re

from ra.core.text import quoted, shown

__all__ = ["label", "shown"]


def label(tag: str, content: str, **attributes: str) -> str:
    """`<tag name="value">content</tag>`, the content word for word.

    Content that holds a closing tag of its own gets a tag with a suffix that does not occur in it.
    """
    name = tag
    salt = 0
    while re.search(rf"</\s*{re.escape(name)}", content, re.IGNORECASE):
        digest = hashlib.sha256(f"{salt}{content}".encode("utf-8", "replace")).hexdigest()
        name, salt = f"{tag}-{digest[:8]}", salt + 1
    opening = " ".join([name, *(f'{key}="{quoted(value)}"' for key, value in attributes.items())])
    return f"<{opening}>\n{content}{'' if content.endswith(chr(10)) else chr(10)}</{name}>"
