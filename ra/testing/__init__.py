"""Tests agents without a model: scripts, a scripted provider, loopback servers, and sessions against them.

from ra.testing import Call, LoopbackServer, Step, session

with LoopbackServer("anthropic", [Step(calls=(Call("Read", {"path": "a.txt"}),)), Step(text="Done.")]) as server:
    talk = session(tmp_path, server)  # or point a client at server.url; server.requests are its requests
"""

from ra.providers.script import Call, Fault, Script, Step, load
from ra.providers.scripted import ScriptedProvider
from ra.testing.kit import app, session
from ra.testing.server import LoopbackServer, Received

__all__ = [
    "Call",
    "Fault",
    "LoopbackServer",
    "Received",
    "Script",
    "ScriptedProvider",
    "Step",
    "app",
    "load",
    "session",
]
