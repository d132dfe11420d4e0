"""What is `layered` wired to? A replayed conversation, and layers that say where the agent is and what it is asked."""

import platform
from datetime import date
from pathlib import Path

from ra.agent import prompt
from ra.agent.compose import Strategy
from ra.agent.layering import Layers
from ra.app.wiring import Wiring
from ra.context.strategies.layered import World


def strategy(wiring: Wiring, default: Strategy) -> Strategy:
    return layers(wiring).layered


def layers(wiring: Wiring) -> Layers:
    settings = wiring.app.config.session.layers
    return Layers(wiring.ground, settings, wiring.observer, world=lambda: _world(wiring))


def _world(wiring: Wiring) -> World:
    app = wiring.app
    resolved, config = app.resolved, app.config
    return World(
        root=str(resolved.root),
        cwd=str(resolved.cwd),
        branch=prompt.git_branch(resolved.root),
        date=date.fromtimestamp(app.clock()).isoformat(),
        system=platform.system(),
        tools=tuple(spec.name for spec in wiring.ground.tools),
        agents={
            name: str(agent.get("description", ""))
            for name, agent in config.agents.items()
            if name != wiring.observer.task.agent
        },
        servers=tuple(server.name for server in config.agent.mcp_servers),
        wiki=_has_articles(config.session.wiki.dirs),
    )


def _has_articles(dirs: tuple[str, ...]) -> bool:
    if not dirs:
        return False
    from ra.context.wiki import has_articles  # only who has a wiki needs it

    return has_articles([Path(folder) for folder in dirs])
