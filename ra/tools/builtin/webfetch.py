"""What does an address say? WebFetch: the page as text, fetched by the same guarded reader as `url:` in a prompt."""

from collections.abc import Awaitable, Callable

import msgspec

from ra.tools.tool import Mistake, Say, Tool, declare

Fetch = Callable[[str], Awaitable[str]]


class WebFetchArgs(msgspec.Struct):
    url: str


def webfetch_tool(fetch: Fetch) -> Tool:
    """`fetch` raises OSError or Mistake for what cannot be had."""

    async def run(args: WebFetchArgs, say: Say) -> str:
        if not args.url.startswith(("https://", "http://")):
            raise Mistake("url must begin with https:// or http://.")
        return await fetch(args.url)

    return declare(WebFetchArgs, run, name="WebFetch", description="Fetch a public web page as text.", reads_only=True)
