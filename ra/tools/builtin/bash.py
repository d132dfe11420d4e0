"""The Bash tool: runs commands in a sandbox, at once or as a background job; the working directory persists."""

from ra.tools.shell import BashArgs
from ra.tools.tool import Tool, declare
from ra.tools.workspace import Workspace


def tool(workspace: Workspace) -> Tool:
    return declare(
        BashArgs,
        workspace.shell.run,
        name="Bash",
        description="Run commands; cd lasts. Sandbox: no network, writes only to the project and a private /tmp.",
        own_timeout=True,
    )
