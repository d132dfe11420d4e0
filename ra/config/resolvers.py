"""Makes the resolvers of a configuration: the built-in ones that are on, the user's own, and one for MCP servers."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ra.context.settings import ResolverSettings
from ra.core.errors import ConfigError
from ra.resolvers.resolver import Resolver
from ra.system import plugins

if TYPE_CHECKING:
    from ra.tools.mcp.servers import Servers


class ConfiguredResolvers:
    """Loaded when a prompt first needs one. `servers` are the MCP servers whose resources can be referred to."""

    def __init__(
        self, settings: Sequence[ResolverSettings], root: Path, worker: plugins.Worker, servers: "Servers | None"
    ) -> None:
        self.custom = any(resolver.path for resolver in settings)
        self._settings = settings
        self._root = root
        self._worker = worker
        self._servers = servers

    def load(self) -> Sequence[Resolver]:
        from ra.resolvers.custom import Custom
        from ra.resolvers.expand import builtin

        chosen: dict[str, Resolver] = {resolver.name: resolver for resolver in builtin()}
        if self._servers is not None:
            from ra.tools.mcp.references import References

            chosen["mcp"] = References(self._servers)
        for settings in self._settings:
            name = settings.name
            if not settings.enabled:
                chosen.pop(name, None)
            elif settings.path:
                loaded = plugins.load(settings.path, base=self._root)
                chosen[name] = Custom(loaded, call=self._worker.call, name=name)
            elif name not in chosen:
                raise ConfigError(f"agent.context.resolvers: {name!r} needs a path; built in are file and url.")
        return tuple(chosen.values())
