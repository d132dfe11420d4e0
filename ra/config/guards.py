"""Which of the user's guards may a project's file take away? None: its rules and hooks come after them."""

from collections.abc import Mapping
from typing import Any


def kept(above: Mapping[str, Any], below: Mapping[str, Any]) -> dict[str, Any]:
    """A project's whole configuration, such that laid over `below` it drops no guard that stands there."""
    data = dict(above)
    if "agent" in data:
        data["agent"] = tightened(data["agent"], below.get("agent", {}))
    if "agents" in data:
        known = below.get("agents", {})
        data["agents"] = {name: tightened(own, known.get(name, {})) for name, own in data["agents"].items()}
    return data


def tightened(above: Mapping[str, Any], below: Mapping[str, Any]) -> dict[str, Any]:
    """The same for the keys of one agent."""
    data = dict(above)
    if "permissions" in data:
        rules = below.get("permissions", {}).get("rules", ())
        data["permissions"] = {"rules": [*rules, *data["permissions"].get("rules", ())]}
    if "middleware" in data:
        hooks = below.get("middleware", {})
        data["middleware"] = {name: [*hooks.get(name, ()), *own] for name, own in data["middleware"].items()}
    if "tools" in data:
        known = below.get("tools", {})
        data["tools"] = {
            name: _tool(name, own, known[name]) if name in known else own for name, own in data["tools"].items()
        }
    return data


def _tool(name: str, above: Any, below: Any) -> Any:
    """A tool that the user has set up stays as it is; a project may still turn it off."""
    if name == "custom":
        return [*below, *above]
    off = above is False or (isinstance(above, Mapping) and above.get("enabled") is False)
    return above if off else below
