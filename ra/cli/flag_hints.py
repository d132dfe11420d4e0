"""Suggests a correction for an unknown flag or a missing value; loaded only for such a line."""

import re

from ra.cli import flags, other_programs, spelling

_EDITS = "--edits auto"
_NO_QUESTIONS = "--edits auto makes changes without asking; commands run in the sandbox, which never asks"
_RESUME = "--resume ID, or -c for the latest session; ra sessions list shows them"
_FOLDER = "cd FOLDER first: ra works in the folder where it is started"
_PROMPT = 'ra "your question", without a flag'
_KEY = "export ANTHROPIC_API_KEY=… (or another provider's); ra doctor checks it"
_SERVER = "export OPENAI_BASE_URL=…, then --provider openai-chat -m MODEL"
_ALWAYS = "nothing: ra does this anyway"

ELSEWHERE = {
    "-C": _FOLDER,
    "-M": "-m NAME",
    "-V": "--version",
    "-a": _NO_QUESTIONS,
    "-d": "-v, which says more on stderr",
    "-e": _PROMPT,
    "-i": "-f PATH for an image; ra, without a prompt, for a conversation",
    "-l": "ra sessions list",
    "-n": "--dry-run sends nothing; --no-session stores nothing",
    "-o": "--output-format json, or > FILE for the answer alone",
    "-r": _RESUME,
    "-s": "--system-prompt TEXT, or --sandbox auto|off",
    "-t": "--thinking LEVEL",
    "-w": "--edits auto",
    "-y": _NO_QUESTIONS,
    "--add-dir": "@../folder in the prompt: files outside the project are asked about",
    "--all-files": '@. in the prompt: ra "explain @."',
    "--allowed-tools": "--allow RULE",
    "--allowedtools": "--allow RULE",
    "--api-base": _SERVER,
    "--api-key": _KEY,
    "--append-system-prompt": "--system-prompt TEXT replaces it; AGENTS.md adds to it",
    "--approval-mode": "--edits ask|auto|off",
    "--ask-for-approval": "--edits ask|auto|off",
    "--auto": _EDITS,
    "--auto-approve": _NO_QUESTIONS,
    "--base-url": _SERVER,
    "--budget": "--max-cost DOLLARS",
    "--cd": _FOLDER,
    "--chat": "ra, without a prompt",
    "--cwd": _FOLDER,
    "--dangerously-bypass-approvals-and-sandbox": "--edits auto --sandbox off",
    "--dangerously-skip-permissions": _EDITS,
    "--debug": "--verbose",
    "--dir": _FOLDER,
    "--directory": _FOLDER,
    "--disallowed-tools": "--deny RULE",
    "--disallowedtools": "--deny RULE",
    "--dry": "--dry-run",
    "--edit": "--edits ask|auto|off",
    "--effort": "--thinking LEVEL",
    "--format": "--output-format text|json|stream-json",
    "--full-auto": _EDITS,
    "--image": "--file PATH",
    "--include-directories": "@../folder in the prompt",
    "--input": "--file PATH, or < FILE",
    "--interactive": "ra, without a prompt",
    "--json": "--output-format json",
    "--json-output": "--output-format json",
    "--key": _KEY,
    "--last": "--continue",
    "--limit": "--max-cost DOLLARS, or --max-iterations N",
    "--list": "ra sessions list",
    "--list-models": "ra models",
    "--list-sessions": "ra sessions list",
    "--log-level": "--verbose, or --set app.logLevel=debug",
    "--max-budget": "--max-cost DOLLARS",
    "--max-budget-usd": "--max-cost DOLLARS",
    "--max-steps": "--max-iterations N",
    "--max-time": "--max-duration SECONDS",
    "--max-tokens": "--max-token-budget N (input and output of the run)",
    "--max-turns": "--max-iterations N",
    "--mcp-config": "mcpServers in ra.yaml, or a file .mcp.json in the project",
    "--message": _PROMPT,
    "--message-file": "ra < FILE",
    "--new": "nothing: without -c every run is a new session",
    "--no-auto-commits": "nothing: ra commits only what you ask it to commit",
    "--no-color": "--plain, or NO_COLOR=1",
    "--no-colour": "--plain, or NO_COLOR=1",
    "--no-edits": "--edits off",
    "--no-markdown": "--plain",
    "--no-sandbox": "--sandbox off",
    "--no-stream": "--output-format json",
    "--offline": "--provider local",
    "--output": "--output-format json, or > FILE for the answer alone",
    "--output-schema": "--json-schema FILE",
    "--permission-mode": "--edits ask|auto|off",
    "--print-config": "--show-config",
    "--profile": "--agent ID, or --config FILE",
    "--prompt": _PROMPT,
    "--prompt-file": "ra < FILE",
    "--query": _PROMPT,
    "--raw": "--plain",
    "--read": "--file PATH",
    "--read-only": "--edits off",
    "--reasoning": "--thinking LEVEL",
    "--reasoning-effort": "--thinking LEVEL",
    "--restore": _RESUME,
    "--schema": "--json-schema FILE",
    "--session": _RESUME,
    "--session-id": _RESUME,
    "--silent": "--quiet",
    "--skip-git-repo-check": _ALWAYS,
    "--stdin": "… | ra: what is piped in follows the prompt",
    "--stream": _ALWAYS + "; --output-format stream-json writes its events",
    "--stream-json": "--output-format stream-json",
    "--system": "--system-prompt TEXT",
    "--temperature": "nothing: ra leaves it to the provider; see --thinking LEVEL",
    "--think": "--thinking LEVEL",
    "--timeout": "--max-duration SECONDS",
    "--token": _KEY,
    "--tools": "--allow RULE, --deny RULE, or --no-tools",
    "--top-p": "nothing: ra leaves it to the provider; see --thinking LEVEL",
    "--workdir": _FOLDER,
    "--working-directory": _FOLDER,
    "--worktree": "git worktree add, then cd there first",
    "--yes": _NO_QUESTIONS,
    "--yolo": _EDITS,
}
"""Other programs' flags (long ones in lower case), and what does the same here."""

PROVIDERS = {
    "chatgpt": "--provider openai",
    "claude": "--provider anthropic",
    "codex": "--provider openai",
    "deepseek": _SERVER,
    "gemini": "--provider google",
    "gpt": "--provider openai",
    "groq": _SERVER,
    "llama.cpp": "export OPENAI_BASE_URL=http://127.0.0.1:8080/v1, then --provider openai-chat -m MODEL",
    "lmstudio": "export OPENAI_BASE_URL=http://127.0.0.1:1234/v1, then --provider openai-chat -m MODEL",
    "mistral": _SERVER,
    "ollama": "export OPENAI_BASE_URL=http://127.0.0.1:11434/v1, then --provider openai-chat -m MODEL",
    "openrouter": "export OPENROUTER_API_KEY=…, then -m VENDOR/MODEL",
    "together": _SERVER,
    "vllm": "export OPENAI_BASE_URL=http://127.0.0.1:8000/v1, then --provider openai-chat -m MODEL",
}
"""Names that are not providers here, and how to reach what they mean."""

VALUE_HELP = {
    "--agent": "ra agent list shows them",
    "--model": "ra models lists them",
    "--resume": "ra -c continues the latest session; ra sessions list shows all",
}
"""Where to find the values of a flag."""

AFTER_DASHES = "A prompt that begins with a dash goes after `--`."


def unknown(flag: str) -> str:
    """The message about an unknown flag."""
    if advice := ELSEWHERE.get(flag if len(flag) == 2 else flag.lower()):
        return f"Unknown flag {flag}; what you want is: {advice}. {AFTER_DASHES}"
    name = flag.lstrip("-").lower()
    if f"--{name}" in flags.BY_FLAG:
        return f"Unknown flag {flag}; did you mean --{name}? {AFTER_DASHES}"
    if name in flags.COMMANDS:
        return f"Unknown flag {flag}; it is a command: ra {name}"
    if len(name) > 1 and (row := other_programs.BY_WORD.get(name)) and row.shell:
        return f"Unknown flag {flag}; what you want is: {row.shell}. {AFTER_DASHES}"
    if meant := _near(name):
        advice = ELSEWHERE.get(meant, meant)
        return f"Unknown flag {flag}; did you mean {advice}? {AFTER_DASHES}"
    return f"Unknown flag {flag}; see ra --help. {AFTER_DASHES}"


def _near(name: str) -> str:
    """The flag that a misspelt one resembles: `continue-session`, `out`, `modle`."""
    own = [flag.removeprefix("--") for flag in flags.BY_FLAG if flag.startswith("--")]
    others = [flag.removeprefix("--") for flag in ELSEWHERE if flag.startswith("--")]
    longer = next((flag for flag in own if name.startswith(f"{flag}-")), "")
    near = longer or spelling.nearest(name, own) or spelling.nearest(name, others)
    return f"--{near}" if near else ""


def missing_value(flag: flags.Flag) -> str:
    name = flag.names[-1]
    where = VALUE_HELP.get(name) or flag.help
    return f"{name} needs a value: {name} {flag.value or '|'.join(flag.choices)} ({where})."


def superfluous_value(flag: flags.Flag, value: str) -> str:
    """The message about a switch with a value: `-help` parses as -h with the value "elp"; `--continue=4f`."""
    for short in (name for name in flag.names if len(name) == 2):
        if f"-{short}{value}" in flags.BY_FLAG:
            return f"There is no flag {short}{value}; did you mean -{short}{value}?"
    name = flag.names[-1]
    if name == "--continue":
        return f"--continue takes no value: it continues the latest session. For another one: --resume {value}"
    return f"{name} takes no value; leave out {value!r}."


def wrong_provider(name: str) -> str:
    """The message about an unknown provider."""
    lower = name.lower()
    if lower in flags.PROVIDERS:
        return f"--provider {name}: write it in lower case: --provider {lower}"
    if lower in PROVIDERS:
        return f"There is no provider {name}; what you want is: {PROVIDERS[lower]}"
    if meant := spelling.nearest(lower, flags.PROVIDERS):
        return f"There is no provider {name}; did you mean --provider {meant}?"
    return f"There is no provider {name}; use {', '.join(flags.PROVIDERS)}."


def explain(error: flags.UnreadableFlags) -> str:
    """What to type instead of a line that the parser refused."""
    message = str(error)
    if provider := re.fullmatch(r"unknown provider: (.*)", message, re.DOTALL):
        return wrong_provider(provider[1])
    if unknown_flag := re.match(r"unrecognized arguments: (-[^\s=]*)", message):
        return unknown(unknown_flag[1])
    about = re.fullmatch(r"argument (?:\S*/)?(-\S+): (expected one argument|ignored explicit argument '(.*)')", message)
    flag = flags.BY_FLAG.get(about[1]) if about else None
    if about and flag:
        return missing_value(flag) if about[3] is None else superfluous_value(flag, about[3])
    return f"{message[:1].upper()}{message[1:]}; see ra --help."
