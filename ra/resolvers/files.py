"""Resolves `@path` to a file, a folder, a glob or some lines, inside the project unless the user agrees."""

# Strings: a Path would drop the trailing slash, and raise on a cycle of links.
# ruff: noqa: PTH111, PTH112, PTH113, PTH118, PTH119

import os
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from ra.core.messages import Content, Document, Image, Text
from ra.core.text import clean, label, shown
from ra.resolvers import file_content, file_search
from ra.resolvers.file_content import FileContent, Unreadable
from ra.resolvers.file_search import SearchResult
from ra.resolvers.resolver import Lines, Resolution, ResolverContext
from ra.system.files import similar_names

MAX_FILES = 200
MAX_BYTES = file_content.MAX_TEXT_BYTES
MAX_MEDIA_BYTES = 20_000_000
SIMILAR_SECONDS = 0.3

_TRAILING = ".,;:!?)]}'\"»”’…。、，；：！？）】」』》"
_SPECIAL = re.compile(r"[^\w.-]")
_CJK_STOP = re.compile("[…。、，；：！？）】」』》]")
MAX_FORMS = 8
_BRACKETS = {")": "(", "]": "[", "}": "{"}
_RANGE = re.compile(r"(?P<path>.+?)(?::|#L)(?P<first>\d{1,9})(?P<dash>[-–]L?(?P<last>\d{1,9})?)?", re.DOTALL)
_WITH_LINES = re.compile(r"(?P<path>.+?)(?::|#)(?P<lines>.+)", re.DOTALL)
_PLAIN = re.compile(r"[A-Za-z0-9_./~*{},+=@%:#?!\[\]\\^-]+")
_SCOPE = re.compile(r"[a-z0-9~-][a-z0-9._~-]*/[a-z0-9._~-]+(@[^/]*)?")
_CALL = re.compile(r"[\w.]+\(")
_SUFFIX = re.compile(
    r"[^/]\.(bash|bat|c|cc|cfg|conf|cpp|cs|css|csv|dart|diff|env|erl|exs?|go|gradle|graphql|h|hpp|hs|html?|ini|ipynb|java"
    r"|jl|jpe?g|jsx?|jsonl?|kt|less|lock|log|lua|mdx?|mjs|ml|nix|patch|pdf|php|pl|png|proto|ps1|pyi?|r|rb|rs|rst|sass"
    r"|scala|scss|sh|sql|svelte|svg|swift|tex|tf|toml|tsx?|tsv|txt|vue|webp|xml|ya?ml|zig|zsh)$",
    re.IGNORECASE,
)


class Files:
    """The built-in resolver of `@path`, `@dir/`, `@glob`, `@"with spaces"` and `@file:10-40`."""

    name = "file"
    # Not after a letter or digit, as in an e-mail address. Not after @, \, /, ., + or -, which mean something else.
    pattern = re.compile(
        r"""(?<![A-Za-z0-9_@\\/.+-])@(?!@)("[^"\n]+"(?::\d[\d-]*)?|'[^'\n]+'(?::\d[\d-]*)?|"""
        r"""(?:\\[ ]|(?![,;、，；]@)[^\s"`<>|])+)"""  # in `@a,@b` the comma ends the first reference
    )

    async def resolve(self, ref: str, place: ResolverContext, *, in_code: bool) -> Resolution:
        forms = list(candidates(ref))
        for form in forms:
            try:
                path, lines = _target(form, place.cwd)
            except Unreadable as reason:
                return Resolution(warnings=(f"@{shown(form)}: {reason}; not attached.",))
            if path is not None:
                return await self._existing(form, path, lines, place)
        globs = [form for form in forms if file_search.is_glob(form) and not in_code]
        answers: list[Resolution] = []
        for form in globs:  # a final question mark may belong to the sentence or to the pattern
            answers.append(await self._glob(form, place))
            if answers[-1].names:
                return answers[-1]
        if answers and forms[0] in globs:
            return answers[0]
        return Resolution() if in_code else _missing(forms, place, quoted=ref[0] in "\"'")

    async def _existing(self, ref: str, path: str, lines: Lines | None, place: ResolverContext) -> Resolution:
        real = os.path.realpath(path)
        name = _relative(path, place.root)
        if refusal := await _refusal(path, real, ref, place):
            return Resolution(warnings=(refusal,))
        if os.path.isdir(real):
            return _attach_many(ref, file_search.find_in(real, root=place.root), place)
        if real in place.sent or (lines and _already_sent(place.sent_lines.get(real, ()), lines)):
            return Resolution(names=(name,))
        try:
            if lines is None:
                loaded = file_content.load(real, name=os.path.basename(name))
            else:
                loaded = file_content.load_lines(real, *lines)
        except Unreadable as reason:
            return Resolution(warnings=(f"@{shown(ref)}: {shown(name)} {reason}; not attached.",))
        warnings = (f"@{shown(ref)}: {loaded.left_out}.",) if loaded.left_out else ()
        if lines is None:
            place.sent.add(real)
        else:
            place.sent_lines.setdefault(real, []).append(lines)
        return Resolution(blocks(name, loaded, lines), warnings, (name,))

    async def _glob(self, ref: str, place: ResolverContext) -> Resolution:
        if _full(ref, place.cwd) is None:
            return Resolution()
        pattern = os.path.expanduser(ref)
        bases = dict.fromkeys(
            file_search.split(alternative, place.cwd)[0] for alternative in file_search.braces(pattern)
        )
        for base in bases:
            if refusal := await _refusal(base, base, ref, place):
                return Resolution(warnings=(refusal,))
        search = file_search.find(pattern, cwd=place.cwd, root=place.root)
        no_match = not search.files and not search.ignored and not search.links_out and search.complete
        # `@*` may be emphasis and `@alice[1]` a footnote: without a match they are not references.
        is_text = ref.strip("*{},") == "" or not ("*" in ref or "{" in ref or _looks_like_path(ref, place.cwd))
        return Resolution() if no_match and is_text else _attach_many(ref, search, place)


def candidates(ref: str) -> Iterator[str]:
    """What the reference may mean, best first: without the sentence's punctuation, as typed, its ASCII part alone."""
    if ref[0] in "\"'" and ref.count(ref[0]) == 2:
        inner, _, behind = ref[1:].partition(ref[0])
        yield inner + behind
        return
    if not ref.strip("./"):
        yield ref
        return
    # These languages put no spaces between words: a name ends at the punctuation of its sentence.
    forms = [ref[: match.start()] for match in islice(_CJK_STOP.finditer(ref), MAX_FORMS)]
    forms.append(ref)
    while forms[-1] and forms[-1][-1] in _TRAILING and not _balanced(forms[-1]):
        forms.append(forms[-1][:-1])
    plain = _PLAIN.match(ref)
    ascii_part = plain[0].rstrip(".,:") if plain else ""
    # Not the folder of a longer name: report a missing file, rather than attach everything beside it.
    forms.insert(0, "" if ascii_part.endswith("/") and plain and plain[0] != ref else ascii_part)
    seen: set[str] = set()
    for form in reversed(forms):
        if form and form not in seen:
            seen.add(form)
            yield form


def _balanced(text: str) -> bool:
    """Whether the final closing bracket has an opening one: `{a,b}`, `notes(1)`."""
    opening = _BRACKETS.get(text[-1])
    return opening is not None and text.count(opening) >= text.count(text[-1])


def _target(form: str, cwd: Path) -> tuple[str | None, Lines | None]:
    """The existing path and its lines; None when there is no such file. Raises Unreadable for lines such as 40-10."""
    if path := _existing_path(form, cwd):
        return path, None
    match = _RANGE.fullmatch(form)
    path = _existing_path(match["path"], cwd) if match else None
    if match is None or path is None or not os.path.isfile(path):
        return None, None
    first = int(match["first"])
    if not first:
        raise Unreadable("lines are counted from 1")
    if not match["dash"]:
        return path, (first, first)
    last = int(match["last"]) if match["last"] else None
    if last is not None and last < first:
        raise Unreadable(f"the lines run backwards; write {match['path']}:{last}-{first}")
    return path, (first, last)


def _already_sent(ranges: Sequence[Lines], lines: Lines) -> bool:
    """Whether the prompt already has a range that includes these lines."""
    first, last = lines
    return any(start <= first and (end is None or (last is not None and last <= end)) for start, end in ranges)


def _existing_path(form: str, cwd: Path) -> str | None:
    """The existing path for the text as typed, else with its backslashes read as escapes."""
    paths = (_full(text, cwd) for text in dict.fromkeys((form, file_search.unescape(form))))
    return next((path for path in paths if path is not None and os.path.lexists(path)), None)


def _full(form: str, cwd: Path) -> str | None:
    try:
        os.fsencode(form)
    except UnicodeEncodeError:
        return None
    return None if "\0" in form else os.path.join(cwd, os.path.expanduser(form))


async def _refusal(path: str, real: str, ref: str, place: ResolverContext) -> str:
    """Why this must not be read; "" when it may."""
    root = os.path.realpath(place.root)
    if file_search.inside(real, root):
        return ""
    typed = os.path.normpath(path)
    if file_search.inside(typed, str(place.root)) or file_search.inside(typed, root):
        return f"@{shown(ref)}: a link that leads out of the project, to {shown(real)}; not attached."
    if place.ask_outside is not None and await place.ask_outside(Path(real)):
        return ""
    return f"@{shown(ref)}: outside the project ({shown(str(place.root))}); not attached. Use --file for such a file."


def _missing(forms: Sequence[str], place: ResolverContext, *, quoted: bool) -> Resolution:
    """The warning for a text that looks like a path; nothing for `@property`, `@types/node`, `@alice`."""
    form = forms[0]
    if _CALL.match(form):  # a decorator
        return Resolution()
    match = _WITH_LINES.fullmatch(form)
    path = _existing_path(match["path"], place.cwd) if match else None
    if match and path and os.path.isfile(path):
        problem = (
            f"{shown(match['lines'])} names no lines; write {shown(match['path'])}:10-40, one range for each reference"
        )
        return Resolution(warnings=(f"@{shown(form)}: {problem}; not attached.",))
    if not quoted and not _looks_like_path(form, place.cwd):  # in a sentence without spaces: `@src/auth.py的作用`
        form = next((shorter for shorter in reversed(forms) if _looks_like_path(shorter, place.cwd)), form)
    similar = _similar(form, place)
    if not similar and not quoted and not _looks_like_path(form, place.cwd):
        return Resolution()
    hint = f" Did you mean {' or '.join('@' + shown(name) for name in similar)}?" if similar else ""
    return Resolution(warnings=(f"@{shown(form)}: file not found.{hint}",))


def _looks_like_path(form: str, cwd: Path) -> bool:
    match = _RANGE.fullmatch(form)
    path = match["path"] if match else form
    if path.startswith(("./", "../", "~/", "/")) or path.endswith("/") or _SUFFIX.search(path, max(len(path) - 12, 0)):
        return True
    return "/" in path and (not _SCOPE.fullmatch(path) or os.path.isdir(_full(path.partition("/")[0], cwd) or ""))


def _similar(form: str, place: ResolverContext) -> list[str]:
    """Similar names in the directory that the text names, else files of the same name elsewhere in the project."""
    match = _RANGE.fullmatch(form)
    folder, slash, name = (match["path"] if match else form).rstrip("/").rpartition("/")
    full = _full(folder or ("/" if slash else "."), place.cwd)
    if full is None or len(name) < 3:
        return []
    if similar := similar_names(full, name, most=2, cutoff=0.75):
        return [f"{folder}{slash}{similar_name}" for similar_name in similar]
    if not _SUFFIX.search(name) or not file_search.inside(os.path.normpath(full), str(place.root)):
        return []
    name = _SPECIAL.sub(r"\\\g<0>", name)
    others = file_search.find(f"**/{name}", cwd=place.root, root=place.root, max_seconds=SIMILAR_SECONDS).files
    return [os.path.relpath(path, os.path.realpath(place.cwd)) for path in others[:2]]


def _relative(path: str, root: Path) -> str:
    """The name to show: relative to the project, if the path is inside it."""
    full = os.path.normpath(path)
    for base in (str(root), os.path.realpath(root)):
        if file_search.inside(full, base) and full != base:
            return os.path.relpath(full, base)
    return full


def blocks(name: str, loaded: FileContent, lines: Lines | None = None) -> tuple[Content, ...]:
    """The blocks for a file: labelled with its name, and with what is left out."""
    extra = {"left-out": loaded.left_out} if loaded.left_out else {}
    if lines:
        first, last = lines
        extra = {"lines": f"{first}-{last or ''}" if last != first else str(first), **extra}
    match loaded.content:
        case Image(media_type=media) | Document(media_type=media):
            return (Text(label("file", f"[{media}, next block]", path=name)), loaded.content)
        case str() as text:
            marker = f"\n[… {loaded.left_out}]" if loaded.left_out else ""
            return (Text(label("file", clean(text) + marker, path=name, **extra)),)


def _attach_many(ref: str, search: SearchResult, place: ResolverContext) -> Resolution:
    """Attaches the files of a glob or directory, as many as fit, and reports the others."""
    attached: list[Content] = []
    names: list[str] = []
    refused: list[str] = []
    dropped: list[str] = []
    text_left, media_left = MAX_BYTES, MAX_MEDIA_BYTES
    for path in search.files:
        if len(names) == MAX_FILES or text_left <= 0:
            dropped.append(path)
            continue
        name = _relative(path, place.root)
        real = os.path.realpath(path)
        if real in place.sent:
            names.append(name)
            continue
        try:
            loaded = file_content.load(real, limit=text_left, name=os.path.basename(name))
        except Unreadable as reason:
            refused.append(f"{shown(name)} {reason}")
            continue
        size = loaded.size if isinstance(loaded.content, str) else 0
        media = 0 if isinstance(loaded.content, str) else loaded.size
        if (loaded.left_out and names) or media > media_left:
            dropped.append(path)
            continue
        text_left, media_left = text_left - size, media_left - media
        names.append(name)
        place.sent.add(real)
        attached += blocks(name, loaded)
    omissions = _omissions(search, len(names), dropped, refused, place.root)
    if not attached and not names:
        return Resolution(warnings=(f"@{shown(ref)}: nothing attached: {omissions or 'no file matches'}.",))
    if not omissions:
        return Resolution(tuple(attached), (), tuple(names))
    summary = f"@{shown(ref)}: {len(names)} file{'s' * (len(names) != 1)} attached; {omissions}."
    return Resolution((*attached, Text(f"[{summary}]")), (summary,), tuple(names))


def _omissions(search: SearchResult, attached: int, dropped: Sequence[str], refused: Sequence[str], root: Path) -> str:
    """The files that were left out, and why."""
    parts = []
    if dropped:
        first = ", ".join(shown(_relative(path, root)) for path in dropped[:3])
        limit = f"{MAX_FILES} files" if attached == MAX_FILES else f"{MAX_BYTES // 1000} KB"
        parts.append(f"{len(dropped)} left out over the limit of {limit} ({first}{', …' if len(dropped) > 3 else ''})")
    if refused:
        parts.append(f"{len(refused)} refused ({'; '.join(refused[:3])}{'; …' if len(refused) > 3 else ''})")
    if search.links_out:
        leads = "link leads" if search.links_out == 1 else "links lead"
        parts.append(f"{search.links_out} {leads} out of the project")
    if search.ignored and not attached:
        parts.append(f"{search.ignored} ignored by git")
    if not search.complete:
        parts.append("the search stopped after too many files, so there may be more")
    return "; ".join(parts)
