"""What does an address say? WebFetch: the page as text, fetched by the same guarded reader as `url:` in a prompt."""

import msgspec

from ra.tools.kit import Kit
from ra.tools.tool import Mistake, Say, Tool, declare


class WebFetchArgs(msgspec.Struct):
    url: str


def tool(kit: Kit) -> Tool | None:
    fetch = kit.fetch
    if fetch is None:
        return None

    async def run(args: WebFetchArgs, say: Say) -> str:
        if not args.url.startswith(("https://", "http://")):
            raise Mistake("url must begin with https:// or http://.")
        return await fetch(args.url)

    return declare(WebFetchArgs, run, name="WebFetch", description="Fetch a public web page as text.", reads_only=True)
