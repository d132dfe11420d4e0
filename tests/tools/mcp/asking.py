"""An MCP server of the SDK that asks its client: for a form, for an answer of the model, and to list it anew."""

from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context, Elicit, MCPServer, Resolve, Sample
from mcp_types import CreateMessageResult, SamplingMessage, TextContent
from pydantic import BaseModel, Field

server = MCPServer("asking", version="1", log_level="ERROR")


class Trip(BaseModel):
    days: int = Field(title="How many days?")
    by: Literal["train", "boat"] = "train"


async def trip(ctx: Context[Any, Any]) -> Elicit[Trip]:
    return Elicit("Where do you want to go?", Trip)


async def line(topic: str) -> Sample:
    question = SamplingMessage(role="user", content=TextContent(text=f"A line about {topic}."))
    return Sample([question], max_tokens=300, system_prompt="You are a poet.")


@server.tool()
async def plan(trip: Annotated[Trip, Resolve(trip)]) -> str:
    """Plan a trip."""
    return f"{trip.days} days by {trip.by}"


@server.tool()
async def write(topic: str, line: Annotated[CreateMessageResult, Resolve(line)]) -> str:
    """Write a line."""
    assert isinstance(line.content, TextContent)
    return f"{line.model}: {line.content.text}"


def extra(text: str) -> str:
    """Only there after `grow`."""
    return f"extra {text}"


@server.tool()
async def grow(ctx: Context[Any, Any]) -> str:
    """Offer one more tool."""
    server.add_tool(extra, name="extra")
    await ctx.notify_tools_changed()
    return "grown"


@server.tool()
async def shrink(ctx: Context[Any, Any]) -> str:
    """Offer one tool less."""
    server.remove_tool("plan")
    await ctx.notify_tools_changed()
    return "shrunk"


if __name__ == "__main__":
    server.run("stdio")
