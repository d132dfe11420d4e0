"""Adds to the help of each command: examples to type, and the commands that usually follow."""

from functools import partial
from typing import Any, NamedTuple

import typer


class Examples(NamedTuple):
    """Lines to type with their effects, and the commands that usually follow."""

    lines: dict[str, str]
    next: str = ""


COMMANDS: dict[str, Examples] = {
    "acp": Examples(
        {"ra acp": "what the editor starts", "ra -m opus acp": "with a model of your choice"}, "docs/tools.md"
    ),
    "agent": Examples({"ra agent list": "list them", "ra agent show devops": "show one of them"}),
    "agent list": Examples(
        {"ra agent list": "list them", "ra agent show devops": "one of them"}, "ra agent capability ID"
    ),
    "agent show": Examples(
        {"ra agent show devops": "all values", "ra agent show devops | grep model": "one value"},
        "ra config show",
    ),
    "agent capability": Examples(
        {
            "ra agent capability devops --context-strategy planner": "choose a strategy",
            "ra agent capability devops --context-strategy -": "back to the default",
        },
        "ra agent show ID",
    ),
    "bench": Examples(
        {
            "ra bench context --trace ~/.claude": "replay your own sessions; costs nothing",
            "ra bench context --preset seed": "the published comparison",
        }
    ),
    "bench context": Examples(
        {
            "ra bench context --trace s.jsonl": "one transcript, all strategies",
            "ra bench context --preset seed": "the published comparison",
        },
        "ra open FILE, ra cost --what-if auto",
    ),
    "compact": Examples(
        {"ra compact --dry-run": "what would be hidden, and the price", "ra compact": "hide it"},
        "ra recall, ra context",
    ),
    "config": Examples({"ra config show": "every value and its source", "ra config init": "create a ra.yaml here"}),
    "config show": Examples(
        {"ra config show": "every value and its source", "ra config show | grep model": "one of them"}, "ra config init"
    ),
    "config check": Examples(
        {"ra config check": "all files", "ra config check && echo fine": "in a script"}, "ra doctor"
    ),
    "config path": Examples(
        {"ra config path": "configuration and data", 'cd "$(ra config path | tail -1)"': "go to the data folder"}
    ),
    "config import": Examples(
        {"ra config import claude": "settings of Claude Code", "ra config import codex": "settings of Codex"},
        "ra config init --user",
    ),
    "config init": Examples(
        {"ra config init": "for this project", "ra config init --user": "for all your projects"}, "ra config check"
    ),
    "context": Examples(
        {
            "ra context": "the next request, by source",
            "ra context diff": "what broke the cached prefix, and its price",
            "ra context show --at 4": "the exact request at position 4",
        },
        "ra compact --dry-run, ra cost --by source",
    ),
    "cost": Examples(
        {
            "ra cost --since 7d --by source": "the last week, by source",
            "ra cost --what-if auto": "what auto would have cost",
            "ra cost --from ~/.claude --by day": "another agent's logs",
        },
        "ra bench context, ra open",
    ),
    "cost quote": Examples(
        {
            "ra cost quote --model opus --input 20000 --output 500": "a call without a cache",
            "ra cost quote --model opus --input 10 --cache-read 200000 --json": "for scripts",
        }
    ),
    "doctor": Examples({"ra doctor": "check everything", "ra doctor --json": "for scripts"}),
    "entry": Examples(
        {'ra entry set style "Use tabs."': "keep a rule in every request", "ra entry list": "list what is kept"}
    ),
    "entry set": Examples(
        {
            'ra entry set style "Use tabs."': "set or replace",
            'ra entry set api "Port 8080." --name notes': "with a label",
        },
        "ra entry list, ra context",
    ),
    "entry rm": Examples({"ra entry rm style": "remove one", "ra entry rm style --session 4f": "in another session"}),
    "entry list": Examples({"ra entry list": "as a table", "ra entry list --json": "for scripts"}, "ra entry show ID"),
    "entry show": Examples({"ra entry show style": "its text", "ra entry show style > style.md": "into a file"}),
    "local": Examples({"ra local status": "check whether it is there", "ra local install": "download it (98 MB)"}),
    "local install": Examples(
        {"ra local install": "with progress", "ra local install --quiet": "without"},
        'ra --provider local "What is the capital of France?"',
    ),
    "local status": Examples(
        {"ra local status": "check", "ra local status || ra local install": "download it if it is missing"}
    ),
    "mcp": Examples({"ra mcp list": "servers, their tools and tokens", "ra mcp serve": "run ra as a server"}),
    "mcp list": Examples({"ra mcp list": "all servers", "ra mcp list docs": "one, with its tools"}, "docs/tools.md"),
    "mcp login": Examples({"ra mcp login docs": "opens your browser", "ra mcp list docs": "then list its tools"}),
    "mcp logout": Examples({"ra mcp logout docs": "sign out", "ra mcp login docs": "sign in again"}),
    "mcp serve": Examples(
        {"ra mcp serve": "read-only", "ra --write --max-cost 0.50 mcp serve": "may change files, with a limit"}
    ),
    "models": Examples(
        {"ra models opus": "names that contain opus", "ra models forget": "drop what ra learned from servers"},
        'ra -m MODEL "your question"',
    ),
    "open": Examples(
        {"ra open": "the sessions of this project", "ra open ~/.claude/projects": "transcripts of Claude Code"},
        "ra open SESSION --export page.html",
    ),
    "permissions": Examples(
        {"ra permissions explain 'git push'": "what would happen, and why", "ra permissions list": "the rules"}
    ),
    "permissions explain": Examples(
        {
            "ra permissions explain 'rm -rf build'": "a command",
            "ra permissions explain --tool Write AGENTS.md": "another tool",
        },
        "ra permissions list",
    ),
    "permissions list": Examples(
        {"ra permissions list": "as a table", "ra --deny Bash permissions list": "with one more rule"}
    ),
    "permissions forget": Examples(
        {
            "ra permissions forget 'Bash(make test)'": "take back your yes",
            "ra permissions list": "what is left",
        }
    ),
    "recall": Examples({"ra recall refund": "search", 'ra recall "#12"': "read position 12"}, "ra said, ra context"),
    "said": Examples({"ra said": "as a table", "ra said --json": "for scripts"}, "ra recall, ra entry set"),
    "serve": Examples(
        {"ra serve --port 0": "any free port; the address is printed", "ra serve --token secret-words": "with a token"},
        "docs/http-api.md",
    ),
    "sessions": Examples(
        {"ra sessions list": "this project's sessions", "ra sessions show 4f": "one of them, by the start of its id"}
    ),
    "sessions list": Examples({"ra sessions list": "this project's", "ra sessions list --all": "of all projects"}),
    "sessions show": Examples({"ra sessions show 4f": "as Markdown", "ra sessions show 4f --json": "for scripts"}),
    "sessions export": Examples(
        {"ra sessions export 4f --to s.jsonl": "to move it", "ra sessions export 4f --to s.md": "to read it"}
    ),
    "sessions import": Examples(
        {"ra sessions import s.jsonl": "a session of ra", "ra sessions import rollout.jsonl": "a transcript of Codex"},
        "ra --resume ID",
    ),
    "sessions prune": Examples(
        {"ra sessions prune --older 30d --yes": "by age", "ra sessions prune --keep 20 --yes": "by number"}
    ),
    "sessions rm": Examples({"ra sessions rm 4f": "delete one", "ra sessions list": "what is left"}),
    "sessions copy": Examples(
        {
            "ra sessions copy --to backup.db": "this project's",
            "ra sessions copy --to postgresql://db.example/ra --all": "into a database",
        }
    ),
    "sessions fork": Examples(
        {"ra sessions fork 4f": "copy it", "ra sessions list": "the copy and the original"}, "ra -c"
    ),
    "tour": Examples({"ra tour": "press the keys yourself", "make demo": "watch it play"}),
    "trust": Examples({"ra trust": "show, then ask", "ra trust --yes": "agree without a question"}, "docs/security.md"),
    "trust list": Examples({"ra trust list": "every trusted project", "ra trust": "what this one would run"}),
    "trust revoke": Examples({"ra trust revoke": "this project", "ra trust revoke ../shop": "another one"}),
    "wiki": Examples(
        {"ra wiki query refund": "search the folders", "ra wiki query 'who signs refunds?'": "several words"}
    ),
    "wiki query": Examples(
        {"ra wiki query refund": "passages with file and line", "ra wiki query refund --json": "for scripts"}
    ),
}
COMMANDS["daemon"] = COMMANDS["serve"]


def teach(command: Any, path: str) -> None:
    """Adds the examples of a command and of its subcommands to their help texts."""
    if path in COMMANDS:
        paragraphs = [" ".join(text.split()) for text in (command.help or "").split("\n\n")]
        command.help = "\n\n".join([*paragraphs, *_shown(COMMANDS[path])])
    name_values(command)
    for name, inner in getattr(command, "commands", {}).items():
        teach(inner, f"{path} {name}")


_VALUES = {"<str>": "TEXT", "<list[str]>": "TEXT", "<path>": "PATH", "<list[path]>": "PATH"} | dict.fromkeys(
    ("<int>", "<int range>", "<float>", "<float range>"), "N"
)


def name_values(command: Any) -> None:
    """Names values with words that people know. Typer shows Python types: `<int range>`, `<bool>` beside a switch."""
    for param in (*command.params, command.get_help_option(typer.Context(command))):
        param.display_type_rich = partial(_value, param)


def _value(param: Any, ctx: typer.Context) -> str:
    if param.param_type_name == "argument" or param.is_flag:
        return ""
    shown: str = param.metavar or param.display_type(ctx)
    return _VALUES.get(shown.lower(), shown.strip("<>"))


def _shown(examples: Examples) -> list[str]:
    width = max(map(len, examples.lines))
    # \b keeps Typer from joining the lines.
    lines = "\b\n" + "\n".join(f"{line:<{width}}  {meaning}" for line, meaning in examples.lines.items())
    return [lines, f"Next: {examples.next}"] if examples.next else [lines]
