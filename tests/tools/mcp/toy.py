"""A real MCP server, made with the SDK: `python toy.py stdio`, or `python toy.py http`, which prints its address."""

import asyncio
import base64
import os
import socket
import sys
import time
from typing import Any

from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

toy = MCPServer("toy", version="1", log_level="ERROR", instructions="Numbers and more.")


@toy.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> str:
    """Add two numbers. Slowly."""
    return str(a + b)


@toy.tool()
def environment() -> str:
    """What this server sees of the environment."""
    return "\n".join(f"{name}={value}" for name, value in sorted(os.environ.items()))


@toy.tool()
def picture() -> Image:
    """A tiny picture."""
    return Image(data=PNG, format="png")


@toy.tool()
def flood(size: int) -> str:
    """Much text."""
    return "x" * size


@toy.tool()
def fail() -> str:
    """Always fails."""
    raise ToolError("no luck \x1b[31m")


@toy.tool()
async def work(ctx: Context[Any, Any]) -> str:
    """Tells how far it is."""
    await ctx.report_progress(1, 2, "half")
    await asyncio.sleep(0.05)
    return "done"


@toy.tool()
def sleep(seconds: float) -> str:
    """Does nothing for a while."""
    time.sleep(seconds)
    return "awake"


@toy.tool()
def die() -> str:
    """Ends the server."""
    os._exit(3)


@toy.tool(name="odd.name/" + "x" * 80)
def odd() -> str:
    """A name that no provider takes."""
    return "odd"


@toy.resource("toy://greeting", description="A greeting")
def greeting() -> str:
    return "good morning"


@toy.resource("toy://square/{number}")
def square(number: int) -> str:
    return str(number**2)


@toy.prompt()
def review(path: str) -> str:
    """Review a file."""
    return f"Please review {path}."


def large(tools: int) -> None:
    """As many tools again, each with a long description."""
    for number in range(tools):

        def tool(text: str, number: int = number) -> str:
            return f"{number}: {text}"

        toy.add_tool(tool, name=f"tool_{number}", description=f"Tool number {number}. " + "It is well described. " * 20)


if __name__ == "__main__":
    large(int(os.environ.get("TOY_TOOLS", "0")))
    print("toy is here", file=sys.stderr)
    if sys.argv[1] == "stdio":
        toy.run("stdio")
    else:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        print(f"http://127.0.0.1:{port}/mcp", flush=True)
        toy.run("streamable-http", port=port)
