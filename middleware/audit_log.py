"""Middleware for ra: append what the agent did to a file, one JSON object per line.

    agent:
      middleware:
        beforeToolExecution: [./middleware/audit_log.py]
        afterToolExecution: [./middleware/audit_log.py]
        onError: [./middleware/audit_log.py]

The file is $RA_AUDIT_LOG, or .ra/audit.jsonl below the working directory. List it after redact_secrets.py, or the
secrets are in this file.
"""

import json
import os
import time
from pathlib import Path


def middleware(ctx):
    record = {
        "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "session": ctx.loop.session,
        "iteration": ctx.loop.iteration,
        "hook": ctx.hook,
    }
    call = getattr(ctx, "tool_call", None)
    if call is not None:
        record |= {"tool": call.name, "args": call.args, "call": call.id}
    result = getattr(ctx, "result", None)
    if result is not None:
        record |= {"is_error": result.is_error, "characters": len(result.content)}
    error = getattr(ctx, "error", None)
    if error is not None:
        record |= {"error": f"{type(error).__name__}: {error}"}
    path = Path(os.environ.get("RA_AUDIT_LOG", ".ra/audit.jsonl"))
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
        file.write(json.dumps(record, default=str) + "\n")
