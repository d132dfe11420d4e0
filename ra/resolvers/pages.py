"""Turns a fetched page into text: HTML becomes Markdown, other text stays unchanged, binary content is refused."""

import codecs
import re
from html import unescape

from ra.core.text import clean
from ra.core.value import Value

MAX_HTML = 300_000  # characters converted to Markdown: about a second of work
CUT = "\n[… cut here: the page continues]"
MAX_DEPTH = 200  # of nested tags: the converter's time grows with its square
MAX_INDENTS = 8
_INDENTS = frozenset({"ul", "ol", "blockquote", "dl"})

_TEXTS = ("", "application/json", "application/xml", "application/javascript", "application/yaml")
_CODECS = re.compile(r"(utf|iso8859|latin|ascii|cp\d|windows|gb|big5|shift|euc|koi8|mac)")

# Each pattern reads a character at most a few times, whatever the page: no `.*` that can restart everywhere.
_NOISE = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style|noscript|template|svg|head)\b.*?(?:</\1\s*>|\Z)", re.IGNORECASE | re.DOTALL
)
_TITLE = re.compile(r"<title[^<>]*>([^<]*)", re.IGNORECASE)
_META = re.compile(rb"""<meta[^<>]{0,200}charset=["']?([\w-]+)""", re.IGNORECASE)
_OPENED = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)")
_BLOCK = re.compile(r"</?(?:p|div|br|li|tr|h\d|ul|ol|table|section|article|pre|dt|dd)\b[^<>]*>", re.IGNORECASE)
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
_VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())  # noqa: SIM905 - a list of words reads better


class FetchFailed(OSError):
    """The page could not be fetched; the text is the reason, without a full stop."""


class FetchedPage(Value, frozen=True):
    """A response. `url` is where the redirects ended; with `cut`, `body` is only the beginning."""

    url: str
    status: int
    media_type: str
    charset: str
    body: bytes
    cut: bool = False

    @property
    def text(self) -> str:
        return page_text(self)


def page_text(page: FetchedPage) -> str:
    """The page as text: HTML as Markdown, other text unchanged. Raises FetchFailed when it is binary."""
    kind, codec = page.media_type, _codec(page)
    wide = codec.startswith(("utf-16", "utf-32"))  # every other byte of plain English is 0 in UTF-16
    if (b"\0" in page.body[:8192] and not wide) or not (
        kind in ("", *_TEXTS) or kind.startswith("text/") or kind.endswith(("+json", "+xml"))
    ):
        raise FetchFailed(f"{kind or 'binary content'} is not text")
    text = clean(page.body.decode(codec, "replace")).removeprefix("\ufeff")  # UTF-7 can spell half a character
    if kind in ("text/html", "application/xhtml+xml") or (not kind and "<html" in text[:1000].lower()):
        text = html_to_markdown(text)
    return text + CUT if page.cut and not text.endswith(CUT) else text


def _codec(page: FetchedPage) -> str:
    """The charset from the header or the page, if it is a common one: Python also has codecs that are not charsets."""
    charset = page.charset or ("utf-16" if page.body.startswith((b"\xff\xfe", b"\xfe\xff")) else "")
    if not charset and (match := _META.search(page.body[:2048])):
        charset = match[1].decode("ascii")
    try:
        name = codecs.lookup(charset or "utf-8").name
    except (LookupError, ValueError):
        return "utf-8"
    return name if _CODECS.match(name) else "utf-8"


def html_to_markdown(html: str) -> str:
    """The page as Markdown; its bare text when tags are nested too deeply."""
    title = _TITLE.search(html[:100_000])
    cleaned = _NOISE.sub(" ", html)
    body = cleaned[:MAX_HTML]
    bare_text = unescape(_TAG.sub("", _BLOCK.sub("\n", body)))
    # Each list level indents all its lines: nested lists could make the text a hundred times as large.
    if _depth(body) > MAX_DEPTH or _depth(body, within=_INDENTS) > MAX_INDENTS:
        text = bare_text
    else:
        from markdownify import markdownify  # 90 ms, and only HTML pages need it

        text = str(markdownify(body, heading_style="ATX", strip=["img"]))
        text = text if len(text) <= 2 * len(body) + 1000 else bare_text
    text = "\n".join(line.rstrip() for line in text.split("\n"))
    text = re.sub(r"\n{3,}", "\n\n", text).strip() + (CUT if len(cleaned) > MAX_HTML else "")
    heading = unescape(title[1]).strip() if title else ""
    return f"# {heading}\n\n{text}" if heading and not text.startswith("# ") else text


def _depth(html: str, within: frozenset[str] = frozenset()) -> int:
    """The nesting depth of all tags, or of the tags `within`."""
    depth = deepest = 0
    for closing, name in _OPENED.findall(html):
        if name.lower() in within if within else name.lower() not in _VOID:
            depth = max(depth - 1, 0) if closing else depth + 1
            deepest = max(deepest, depth)
    return deepest
