"""What does one need to test an agent without a model? Scripts, a scripted provider, and loopback servers.

from ra.testing import Call, LoopbackServer, Step

with LoopbackServer("anthropic", [Step(calls=(Call("Read", {"path": "a.txt"}),)), Step(text="Done.")]) as server:
    ...  # point a client at server.url; server.requests holds what it sent
"""

from ra.providers.script import Call, Fault, Script, Step, load
from ra.providers.scripted import ScriptedProvider
from ra.testing.server import LoopbackServer, Received

__all__ = ["Call", "Fault", "LoopbackServer", "Received", "Script", "ScriptedProvider", "Step", "load"]
