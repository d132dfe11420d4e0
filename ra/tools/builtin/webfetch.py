"""The WebFetch tool: fetches a page as text, with the same guarded reader as `url:` in a prompt."""

import asyncio

import msgspec

from ra.tools.tool import Mistake, Say, Tool, declare
from ra.tools.workspace import Workspace


class WebFetchArgs(msgspec.Struct):
    url: str


def tool(workspace: Workspace) -> Tool:
    return declare(WebFetchArgs, _run, name="WebFetch", description="Fetch a public web page as text.", reads_only=True)


async def _run(args: WebFetchArgs, say: Say) -> str:
    if not args.url.startswith(("https://", "http://")):
        raise Mistake("url must begin with https:// or http://.")
    from ra.resolvers.fetch import fetch  # start-up time: ssl and h11, only when the model calls

    page = await fetch(args.url)
    text = await asyncio.to_thread(getattr, page, "text")  # converting a long page to Markdown takes a second
    return text if page.status < 400 else f"The server answered {page.status}.\n{text}"
