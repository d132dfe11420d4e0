"""What does a fetched page say? HTML becomes Markdown, other text stays as it is, binary is refused."""

import codecs
import re
from html import unescape

from ra.core.errors import RaError
from ra.core.value import Value

MAX_HTML = 1_000_000  # what is turned into Markdown: a second of work

_TEXTS = ("", "application/json", "application/xml", "application/javascript", "application/yaml")
_NOISE = re.compile(r"<(script|style|noscript|template|svg|head)\b.*?(?:</\1\s*>|\Z)", re.IGNORECASE | re.DOTALL)
_TITLE = re.compile(r"<title[^>]*>(.*?)</title", re.IGNORECASE | re.DOTALL)
_META = re.compile(rb"""<meta[^>]{0,200}charset=["']?([\w-]+)""", re.IGNORECASE)
_TAG = re.compile(r"<[^>]*>")
_CODECS = re.compile(r"(utf|iso8859|latin|ascii|cp\d|windows|gb|big5|shift|euc|koi8|mac)")


class FetchFailed(RaError):
    """Why there is no page; one sentence without a full stop."""


class Page(Value, frozen=True):
    """What came back. `url` is where the redirects ended; with `cut`, `body` is only the beginning."""

    url: str
    status: int
    media_type: str
    charset: str
    body: bytes
    cut: bool = False

    @property
    def text(self) -> str:
        return page_text(self)


def page_text(page: Page) -> str:
    """The page as text: HTML as Markdown, other text as it is. Raises FetchFailed when it is binary."""
    kind = page.media_type
    if b"\0" in page.body[:8192] or not (
        kind in ("", *_TEXTS) or kind.startswith("text/") or kind.endswith(("+json", "+xml"))
    ):
        raise FetchFailed(f"{kind or 'binary content'} is no text")
    text = page.body.decode(_codec(page), "replace")
    if kind in ("text/html", "application/xhtml+xml") or (not kind and "<html" in text[:1000].lower()):
        return html_to_markdown(text)
    return text


def _codec(page: Page) -> str:
    """The charset of the header or of the page itself. Only plain ones: Python knows some that are no charsets."""
    named = page.charset
    if not named and (
        found := re.search(rb"""<meta[^>]{0,200}charset=["']?([\w-]+)""", page.body[:2048], re.IGNORECASE)
    ):
        named = found[1].decode("ascii")
    try:
        name = codecs.lookup(named or "utf-8").name
    except (LookupError, ValueError):
        return "utf-8"
    return name if _CODECS.match(name) else "utf-8"


def html_to_markdown(html: str) -> str:
    title = _TITLE.search(html[:200_000])
    body = _NOISE.sub(" ", html)[:MAX_HTML]
    from markdownify import markdownify  # 90 ms, and only a page needs it

    try:
        text = str(markdownify(body, heading_style="ATX", strip=["img"]))
    except RecursionError:  # tags nested thousands deep: the words are what counts
        text = unescape(_TAG.sub(" ", body))
    text = re.sub(r"[ \t]+\n", "\n", text)
    text = re.sub(r"\n{3,}", "\n\n", text).strip()
    heading = unescape(title[1]).strip() if title else ""
    return f"# {heading}\n\n{text}" if heading and not text.startswith("# ") else text
