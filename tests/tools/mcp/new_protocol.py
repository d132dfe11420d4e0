"""An MCP server, line by line, whose tool asks as only the protocol of 2026 can: `python new_protocol.py HANDSHAKE`.

HANDSHAKE is `refused`, or `taken` by a server that speaks both protocols and says at the call what it lacks.
"""

import json
import sys
from typing import Any

VERSION = "2026-07-28"
FORM = {"type": "object", "properties": {"days": {"type": "integer"}}, "required": ["days"]}
QUESTION = {"method": "elicitation/create", "params": {"message": "How long?", "mode": "form", "requestedSchema": FORM}}
TOOLS = [{"name": "plan", "description": "Plan a trip.", "inputSchema": {"type": "object", "properties": {}}}]


def called(params: dict[str, Any]) -> dict[str, Any]:
    if VERSION not in json.dumps(params.get("_meta", {})):
        return {"error": {"code": -32602, "message": f"plan asks for input, which only exists at MCP {VERSION}"}}
    answers = params.get("inputResponses")
    if answers is None:
        return {"result": {"resultType": "input_required", "inputRequests": {"trip": QUESTION}, "requestState": "1"}}
    text = f"{answers['trip']['content']['days']} days"
    return {"result": {"resultType": "complete", "content": [{"type": "text", "text": text}]}}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    capabilities: dict[str, Any] = {"tools": {}}
    match method:
        case "server/discover":
            offer = {"supportedVersions": [VERSION], "capabilities": capabilities}
            return {"result": {"resultType": "complete", "cacheScope": "private", "ttlMs": 0, **offer}}
        case "initialize" if sys.argv[1] == "taken":
            info = {"name": "new", "version": "1"}
            version = params["protocolVersion"]
            return {"result": {"protocolVersion": version, "capabilities": capabilities, "serverInfo": info}}
        case "tools/list":
            return {"result": {"resultType": "complete", "cacheScope": "private", "ttlMs": 0, "tools": TOOLS}}
        case "tools/call":
            return called(params)
        case _:
            return {"error": {"code": -32601, "message": "Method not found"}}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        reply = answer(message["method"], message.get("params", {}))
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}) + "\n")
        sys.stdout.flush()
