"""Runs ra in a Python program: `Agent(...).ask("…")`, or `async for event in agent.run("…")`."""

from ra.library.agent import Agent, Unanswered, ask

__all__ = ["Agent", "Unanswered", "ask"]
