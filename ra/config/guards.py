"""Keep the user's guards: a project's file cannot take away a rule or a hook of the user."""

from collections.abc import Mapping
from typing import Any

_LIMITS = ("maxIterations", "maxTokenBudget", "maxCost", "maxDuration")


def kept(above: Mapping[str, Any], below: Mapping[str, Any]) -> dict[str, Any]:
    """A project's whole configuration, such that laid over `below` it drops no guard that stands there."""
    data = dict(above)
    if "agent" in data:
        data["agent"] = tightened(data["agent"], below.get("agent", {}))
    if "agents" in data:
        agents_below = below.get("agents", {})
        data["agents"] = {name: tightened(own, agents_below.get(name, {})) for name, own in data["agents"].items()}
    return data


def tightened(above: Mapping[str, Any], below: Mapping[str, Any]) -> dict[str, Any]:
    """The same for the keys of one agent."""
    data = dict(above)
    if "permissions" in data:
        rules = below.get("permissions", {}).get("rules", ())
        own_rules = [_inside(rule) for rule in data["permissions"].get("rules", ())]
        stricter = _stricter(data["permissions"].get("edits"), below.get("permissions", {}).get("edits"))
        data["permissions"] = {**data["permissions"], "rules": [*rules, *own_rules], "edits": stricter}
    for name in _LIMITS:
        if name in data:
            data[name] = _lower(data[name], below.get(name))
    if "budget" in data:
        limits = below.get("budget", {})
        data["budget"] = limits | {key: _lower(value, limits.get(key)) for key, value in data["budget"].items()}
    if "middleware" in data:
        hooks = below.get("middleware", {})
        data["middleware"] = {name: [*hooks.get(name, ()), *own] for name, own in data["middleware"].items()}
    if "tools" in data:
        tools_below = below.get("tools", {})
        data["tools"] = {
            name: _tool(name, own, tools_below[name]) if name in tools_below else own
            for name, own in data["tools"].items()
        }
    return data


def _lower(above: Any, below: Any) -> Any:
    """A project may spend less than the user allows, never more; 0 is no limit."""
    limits = [value for value in (above, below) if isinstance(value, int | float) and value > 0]
    return min(limits) if limits else above


def _stricter(above: Any, below: Any) -> Any:
    """A project may ask for more questions about edits, never for fewer."""
    order = ("auto", "ask", "off")
    if above not in order[1:]:
        return below
    return max((value for value in (above, below) if value in order), key=order.index)


def _inside(rule: Any) -> Any:
    """A rule of a project lets nothing leave the sandbox: only the user's own file does."""
    return {key: rule[key] for key in rule if key != "outside"} if isinstance(rule, Mapping) else rule


def _tool(name: str, above: Any, below: Any) -> Any:
    """A tool that the user has set up stays as it is; a project may still turn it off."""
    if name == "custom":
        return [*below, *above]
    off = above is False or (isinstance(above, Mapping) and above.get("enabled") is False)
    return above if off else below
