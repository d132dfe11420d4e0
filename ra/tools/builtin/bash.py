"""Bash: a command in a sandbox, with a working directory that lasts, at once or as a background job."""

from ra.tools.kit import Kit
from ra.tools.shell import BashArgs
from ra.tools.tool import Tool, declare


def tool(kit: Kit) -> Tool:
    return declare(
        BashArgs,
        kit.shell.run,
        name="Bash",
        description="Run commands; cd lasts. Sandbox: no network, writes only to the project and a private /tmp.",
        own_timeout=True,
    )
