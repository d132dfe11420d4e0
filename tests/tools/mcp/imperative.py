"""An MCP server of the SDK that asks its client in the middle of a call, as servers did before the protocol of 2026."""

import warnings
from typing import Any, Literal

from mcp.server.mcpserver import Context, MCPServer
from mcp_types import SamplingMessage, TextContent
from pydantic import BaseModel, Field

warnings.simplefilter("ignore")  # sampling is on its way out, and servers still ask for it
server = MCPServer("imperative", version="1", log_level="ERROR")


class Trip(BaseModel):
    days: int = Field(title="How many days?")
    by: Literal["train", "boat"] = "train"


@server.tool()
async def plan(ctx: Context[Any, Any]) -> str:
    """Plan a trip."""
    answer = await ctx.elicit("Where do you want to go?", Trip)
    return f"{answer.data.days} days by {answer.data.by}" if answer.action == "accept" else answer.action


@server.tool()
async def write(topic: str, ctx: Context[Any, Any]) -> str:
    """Write a line."""
    question = SamplingMessage(role="user", content=TextContent(text=f"A line about {topic}."))
    answer = await ctx.session.create_message([question], max_tokens=300, system_prompt="You are a poet.")
    assert isinstance(answer.content, TextContent)
    return f"{answer.model}: {answer.content.text}"


if __name__ == "__main__":
    server.run("stdio")
