"""Turns the text, mentions and attachments of an editor's prompt into one message."""

import base64
import binascii
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from acp import schema
from acp.exceptions import RequestError

from ra.core.messages import Content, Document, Image, Message, Text
from ra.core.text import label
from ra.session.prepare import Prepared
from ra.session.session import Session
from ra.system import images

_LINES = re.compile(r"L?(\d{1,9})(?:[:-]L?(\d{1,9}))?")
"""`#L10:20` in Zed, `#L10-L20` in others."""


def wrong(words: str) -> RequestError:
    return RequestError(-32602, words)


async def prepared(session: Session, prompt: Sequence[Any], *, root: Path, cwd: Path) -> Prepared:
    """Resolves the references in the text, as everywhere; a mentioned file is one of them.

    Its name stays at the place of the mention. Raises RequestError and UserError.
    """
    draft = _Draft(root, cwd)
    for block in prompt:
        draft.add(block)
    if not draft.text.strip() and not draft.files and not draft.blocks:
        raise wrong("The prompt is empty.")
    ready = await session.prepare(draft.text, files=draft.files)
    message = Message("user", (*ready.message.blocks, *draft.blocks))
    return Prepared(message, ready.warnings, ready.references, ready.failed)


class _Draft:
    """A prompt while it is read, block by block."""

    def __init__(self, root: Path, cwd: Path) -> None:
        self.text = ""
        self.files: list[Path] = []
        self.blocks: list[Content] = []
        self._root, self._cwd = root, cwd
        self._after_text = False

    def add(self, block: Any) -> None:
        match block:
            case schema.TextContentBlock():
                self.text += f"\n{block.text}" if self._after_text else block.text
            case schema.ImageContentBlock():
                self.blocks.append(_image(block.data))
            case schema.ResourceContentBlock() if block.uri.startswith("file://"):
                self._mention(block.uri)
            case schema.ResourceContentBlock():
                self._name(block.uri)
            case schema.EmbeddedResourceContentBlock(resource=schema.TextResourceContents() as resource):
                self._name(self._shown(resource.uri))
                self.blocks.append(Text(label("resource", resource.text, ref=resource.uri)))
            case schema.EmbeddedResourceContentBlock(resource=schema.BlobResourceContents() as resource):
                self._name(self._shown(resource.uri))
                self.blocks.append(_blob(resource))
            case _:
                raise wrong(f"A prompt with {block.type} cannot be answered; use text, images and files.")
        self._after_text = isinstance(block, schema.TextContentBlock)

    def _mention(self, uri: str) -> None:
        path = _path(uri)
        if '"' in str(path) or "\n" in str(path) or not path.is_relative_to(self._root):
            self.files.append(path)  # the user named it, wherever it is
            self._name(path.name)
            return
        match = _LINES.fullmatch(urlsplit(uri).fragment)
        lines = f":{match[1]}-{match[2] or match[1]}" if match else ""
        self._name(f'@"{os.path.relpath(path, self._cwd)}{os.sep if path.is_dir() else ""}"{lines}')

    def _name(self, name: str) -> None:
        """Inserts a name at the place of the mention. A reference must follow white space."""
        blank = " " if self.text and not self.text[-1].isspace() else ""
        self.text += f"{blank}{name}"

    def _shown(self, uri: str) -> str:
        path = _path(uri)
        if not uri.startswith("file://") or not path.is_relative_to(self._root):
            return uri
        fragment = urlsplit(uri).fragment
        return os.path.relpath(path, self._cwd) + (f"#{fragment}" if fragment else "")


def _path(uri: str) -> Path:
    return Path(unquote(urlsplit(uri).path))


def _blob(resource: schema.BlobResourceContents) -> Content:
    if resource.mime_type == "application/pdf":
        return Document("application/pdf", _decoded(resource.blob, "a PDF"))
    if (resource.mime_type or "").startswith("image/"):
        return _image(resource.blob)
    kind = resource.mime_type or "an unknown type"
    raise wrong(f"The resource {resource.uri[:200]} is of {kind}, which no model reads; use text, images and PDFs.")


def _image(data: str) -> Image:
    content = _decoded(data, "an image")
    try:
        content, kind = images.fit_image(content)
    except images.UnfitImage as error:
        raise wrong(f"The image {error}.") from error
    return Image(kind, content)


def _decoded(data: str, what: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise wrong(f"The data of {what} is damaged.") from error
