"""An MCP server of the protocol of 2025, line by line and without an SDK: `python lines.py [LIE…]`.

It asks and changes as `asking.py` does, and it lies as it is told: huge, invalid, never ending, wrong ids.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

TEXT = {"type": "text", "text": "cut in a smile: \ud83d"}
LIES = sys.argv[1:]
TOOLS = ["plan", "write", "grow", "shrink", "lie"]


def send(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def receive() -> dict[str, Any]:
    line = sys.stdin.readline()
    if not line:
        sys.exit()
    message: dict[str, Any] = json.loads(line)
    return message


def ask(method: str, **params: Any) -> dict[str, Any]:
    """What the client answers. The notifications in between are nobody's business here."""
    send(id=f"ask-{method}", method=method, params=params)
    while (message := receive()).get("id") != f"ask-{method}":
        pass
    return message.get("result") or {"error": message["error"]["message"]}


def say(id: Any, text: str) -> None:
    send(id=id, result={"content": [{"type": "text", "text": text}]})


def call(id: Any, name: str, args: dict[str, Any]) -> None:
    if name == "plan":
        properties = {
            "days": {"type": "integer", "title": "How many days?"},
            "by": {"type": "string", "enum": ["train", "boat"], "default": "train"},
        }
        form = {"type": "object", "properties": properties, "required": ["days"]}
        answer = ask("elicitation/create", message="Where do you want to go?", requestedSchema=form)
        values = answer.get("content") or {}
        say(id, f"{values['days']} days by {values['by']}" if answer.get("action") == "accept" else f"{answer}")
    elif name == "write":
        content = {"type": "text", "text": f"A line about {args['topic']}."}
        question = {"messages": [{"role": "user", "content": content}], "maxTokens": 300}
        answer = ask("sampling/createMessage", systemPrompt="You are a poet.", **question)
        say(id, f"{answer['model']}: {answer['content']['text']}" if "content" in answer else f"{answer}")
    elif name in ("grow", "shrink"):
        TOOLS.append("extra") if name == "grow" else TOOLS.remove("plan")
        send(method="notifications/tools/list_changed")
        say(id, "grown" if name == "grow" else "shrunk")
    elif name == "lie":
        lie(id, args["how"])
    else:
        say(id, f"{name} {args.get('text')}")


def lie(id: Any, how: str) -> None:
    if how == "ids":
        send(id=10**9, result={"content": []})
        send(id="nobody", error={"code": 1, "message": "no"})
        say(id, "the right one")
    elif how == "shape":
        send(id=id, result={"content": "no list"})
    elif how == "half":
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": id, "result": {"content": [TEXT]}}) + "\n")
        sys.stdout.flush()
    elif how == "deep":
        sys.stdout.write(f'{{"jsonrpc": "2.0", "id": {id}, "result": {"[" * 5000}{"]" * 5000}}}\n')
        sys.stdout.flush()
    elif how == "null":
        send(method=7, id=id)
        send(id=id, result=None)
    elif how == "nothing":
        send(id=id, result={"content": [], "isError": True})
    elif how == "crash":
        sys.stderr.write("out of memory\n")
        sys.exit(1)
    elif how == "rubbish":
        sys.stdout.write("Log line\n{\n[]\n\x00\n")
        say(id, "after rubbish")
    elif how == "changes":
        for _ in range(200):
            send(method="notifications/tools/list_changed")
        say(id, "changed and changed")
    elif how == "questions":
        form = {"type": "object", "properties": {}}
        answers = [ask("elicitation/create", message="Again?", requestedSchema=form) for _ in range(30)]
        say(id, str(sum(answer["action"] == "accept" for answer in answers)))
    elif how == "form":
        answer = ask("elicitation/create", message="A form?", requestedSchema={"type": "object", "properties": "none"})
        say(id, str(answer))
    elif how == "never":
        pass
    elif how == "line":
        sys.stdout.write("x" * (40 << 20) + "\n")
        sys.stdout.flush()


def listing() -> dict[str, Any]:
    schema = {"type": "object", "properties": {"topic": {"type": "string"}}}
    tools = [{"name": name, "description": name, "inputSchema": schema} for name in TOOLS]
    if "odd" in LIES:
        schemas: list[Any] = [None, True, [], {}, {"type": "string"}, {"properties": [], "required": "x"}]
        tools += [{"name": f"odd{n}", "inputSchema": schema} for n, schema in enumerate(schemas)]
        tools += [{"name": "bare"}, {"inputSchema": schema}, "no tool"]
    return {"tools": tools, **({"nextCursor": "again"} if "endless" in LIES else {})}


for lie in LIES:
    while lie.startswith("/") and not Path(lie).exists():  # begins late: when the test makes this file
        time.sleep(0.02)

while True:
    message = receive()
    method, id = message.get("method"), message.get("id")
    if method == "initialize":
        info = {"name": "lines", "version": "1"}
        version = message["params"]["protocolVersion"]
        capabilities = {"tools": {"listChanged": True}}
        send(id=id, result={"protocolVersion": version, "capabilities": capabilities, "serverInfo": info})
    elif method == "tools/list":
        send(id=id, result=listing())
    elif method == "tools/call":
        call(id, message["params"]["name"], message["params"].get("arguments", {}))
    elif id is not None:
        send(id=id, error={"code": -32601, "message": "Method not found"})
