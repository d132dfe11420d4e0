"""Creates the MCP servers of a configuration, without starting them."""

from collections.abc import Mapping, Sequence

from ra.config.load import Resolved
from ra.core.model import ToolSpec
from ra.core.version import __version__
from ra.session.recipe import Notices
from ra.system.environment import clean
from ra.tools.mcp.servers import Servers
from ra.tools.settings import McpServerSettings


def mcp_servers(
    resolved: Resolved, env: Mapping[str, str], notices: Notices, settings: Sequence[McpServerSettings]
) -> Servers:
    """The configured servers, not started yet."""
    return Servers(
        settings,
        root=str(resolved.root),
        env=clean(env),
        shelf=resolved.data_dir / "mcp",
        weigh=_weigh,
        warn=notices.warn,
        version=__version__,
    )


def _weigh(specs: Sequence[ToolSpec]) -> int:
    from ra.context.tokens import Estimator  # start-up time: only for a server that is not in the cache

    return Estimator(1.0).tools(specs)
