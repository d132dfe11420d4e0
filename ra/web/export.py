"""Writes a session as one shareable page: its figures, and its text without anything that looks like a secret."""

import base64
import hashlib
import re
from pathlib import Path

import msgspec

from ra.bench import runs
from ra.core.errors import UserError
from ra.core.secrets import redact
from ra.core.text import one_line
from ra.core.value import encode
from ra.system.files import replace_file
from ra.web import texts
from ra.web.findings import findings
from ra.web.model import LABEL, Recording
from ra.web.server import page_files
from ra.web.sessions import ShownSessions
from ra.web.values import Avoidable, CostFindings, Exported, Mark, Overview, PieceText, RequestPiece, Spender, WhatIf
from ra.web.whatif import Replays, WhatIfQuery

START = "app.js"

_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./([\w.]+)";$', re.MULTILINE)
_PRELOAD = re.compile(r'^<link rel="modulepreload" href="[\w.]+">\n', re.MULTILINE)
_TEXT_BY_KIND = {
    "cut": "Compacted.",
    "rotation": "A new segment began.",
    "edit": "The conversation was changed.",
    "failure": "A call failed or was interrupted.",
    "cache": "A decision about the provider's cache.",
}
_EXPORT = re.compile(r"^export (?=(?:async function|function|class|const) (\w+))", re.MULTILINE)


def export_page(sessions: ShownSessions, path: Path, *, with_text: bool) -> int:
    """Writes the page of the only session; returns its size in bytes. Raises UserError."""
    sessions.read_files()
    cards = sessions.catalog().cards
    if len(cards) != 1:
        why = f"there are {len(cards)}" if cards else "; ".join(sessions.skipped) or "there is none"
        raise UserError(f"--export writes one session, and {why}. Name it: ra open SESSION|FILE --export {path}")
    page = page_of(sessions.recording(cards[0].id), with_text=with_text)
    try:
        replace_file(str(path), page)
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror or error}.") from error
    return len(page)


def page_of(recording: Recording, *, with_text: bool) -> bytes:
    """The page as one file that loads nothing else."""
    data = exported(recording, with_text=with_text)
    files = {name: body.decode() for name, (body, _) in page_files().items()}
    script, style = bundled(files), files["style.css"]
    # "</script>" in a text must not end the element; "<" is the only character that could cause it.
    json = encode(data).decode().replace("<", "\\u003c")
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
    )
    icon = base64.b64encode(files["icon.svg"].encode()).decode()
    page = _PRELOAD.sub("", files["index.html"])
    for place, text in (
        (
            '<meta charset="utf-8">',
            f'<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy" content="{policy}">',
        ),
        ('href="icon.svg"', f'href="data:image/svg+xml;base64,{icon}"'),
        ('<link rel="stylesheet" href="style.css">', f"<style>{style}</style>"),
        (
            '<script type="module" src="app.js"></script>',
            f'<script type="application/json" id="carried">{json}</script>\n<script type="module">{script}</script>',
        ),
    ):
        before, marker, after = page.partition(place)
        assert marker, f"index.html has no {place}"
        page = before + text + after
    return page.encode("utf-8", "replace")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def bundled(files: dict[str, str]) -> str:
    """The modules as one script, since a page opened as a file may load no others: each module becomes a function."""
    order: list[str] = []

    def visit(name: str) -> None:
        if name not in order:
            for _, other in _IMPORT.findall(files[name]):
                visit(other)
            order.append(name)

    visit(START)
    parts = ["const modules = {};"]
    for name in order:
        names = ", ".join(_EXPORT.findall(files[name]))
        body = _EXPORT.sub("", _IMPORT.sub(r'const \1 = modules["\2"];', files[name]))
        parts.append(f'modules["{name}"] = (() => {{\n{body}\nreturn {{ {names} }};\n}})();')
    return "\n".join(parts)


def exported(recording: Recording, *, with_text: bool) -> Exported:
    replayer = Replays(recording)
    session, session_findings = recording.session(), findings(recording)
    replays = _replays(recording, replayer)
    if not with_text:
        return Exported(_without_text(session), _findings_without_text(session, session_findings), [], replays)
    piece_texts = [texts.redacted(content) for content in recording.requests.contents]
    labels = [_label(text) for text in piece_texts]
    pieces = [msgspec.structs.replace(piece, label=label) for piece, label in zip(session.pieces, labels, strict=True)]
    cleaned = msgspec.structs.replace(
        session,
        title=redact(session.title),
        project=redact(session.project),
        file="",
        pieces=pieces,
        marks=[msgspec.structs.replace(mark, text=redact(mark.text)) for mark in session.marks],
        notes=[redact(note) for note in session.notes],
    )
    spenders = [
        Spender(_piece_name(cleaned, each.piece), each.dollars, each.piece) for each in session_findings.spenders
    ]
    avoidable = [msgspec.structs.replace(each, text=_relabelled(each, cleaned)) for each in session_findings.avoidable]
    return Exported(
        cleaned, msgspec.structs.replace(session_findings, spenders=spenders, avoidable=avoidable), piece_texts, replays
    )


def _replays(recording: Recording, replays: Replays) -> WhatIf | None:
    """Every strategy under the session's own conditions, because the page cannot replay by itself."""
    return replays.what_if(WhatIfQuery(runs.STRATEGIES)) if recording.trace.calls else None


def _label(text: PieceText) -> str:
    """The label from the redacted text: a secret that a label cuts in two would no longer look like one."""
    return (
        one_line(" ".join(f"{part.name} {part.text[: 4 * LABEL]}".strip() for part in text.parts), LABEL) or "(empty)"
    )


def _piece_name(session: Overview, piece: int) -> str:
    return f"{session.sources[session.pieces[piece].source]}: {session.pieces[piece].label}"


def _relabelled(finding: Avoidable, session: Overview) -> str:
    """The text of a finding: a re-read ends with a piece's label, which is replaced by the session's redacted one."""
    if finding.kind != "reread":
        return finding.text
    head, colon, _ = finding.text.partition(": ")
    return head + colon + session.pieces[finding.piece].label


def _without_text(session: Overview) -> Overview:
    """The session's figures only: no text of the conversation, no name of a file or project."""
    counts: dict[str, int] = {}

    def numbered(piece: RequestPiece) -> RequestPiece:
        source = session.sources[piece.source]
        counts[source] = counts.get(source, 0) + 1
        return msgspec.structs.replace(piece, label=f"{source} {counts[source]}")

    return msgspec.structs.replace(
        session,
        title=f"A session of {session.agent}",
        project="",
        file="",
        pieces=[numbered(piece) for piece in session.pieces],
        marks=[_mark_without_text(mark) for mark in session.marks],
        notes=[],
    )


def _mark_without_text(mark: Mark) -> Mark:
    """The mark without its reason or error, which may quote the conversation; sizes and times stay."""
    return msgspec.structs.replace(mark, text=_TEXT_BY_KIND.get(mark.kind, mark.text))


def _findings_without_text(session: Overview, with_text: CostFindings) -> CostFindings:
    cleaned = _without_text(session)
    return msgspec.structs.replace(
        with_text,
        avoidable=[msgspec.structs.replace(each, text=_relabelled(each, cleaned)) for each in with_text.avoidable],
        spenders=[Spender(_piece_name(cleaned, each.piece), each.dollars, each.piece) for each in with_text.spenders],
    )
