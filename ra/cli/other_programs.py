"""Other programs' names of commands, and what does the same here."""

from ra.core.value import Value

_KEY = "export ANTHROPIC_API_KEY=… (or another provider's); ra doctor checks it"
_ALONE = "ra, without a prompt"
_NEW = "ra, without a prompt, starts a new session"
_QUESTION = 'ra "your question"'
_NAMED = "nothing: a session is named by its first prompt"


class Row(Value, frozen=True):
    """`sure` words are never a prompt; `alone` words are not a prompt if there is nothing that it could be about.

    `shell` is what to type on the command line, `slash` in the interactive prompt; "" if the word is a prompt or a
    command there.
    """

    sure: str
    alone: str
    shell: str
    slash: str = ""


ROWS = (
    Row(
        "login signin sign-in apikey api-key auth", "key keys connect credentials", _KEY, "!ra doctor, which shows keys"
    ),
    Row("logout signout", "", "unset ANTHROPIC_API_KEY (or another provider's)", "!ra doctor, which shows keys"),
    Row("whoami doctor", "account setup info health healthcheck bug feedback", "ra doctor", "!ra doctor"),
    Row("", "status", "ra doctor", "/context, or /cost"),
    Row("", "debug verbose", 'ra -v "your question", or ra doctor', "!ra doctor"),
    # conversations
    Row("chat", "repl interactive tui start ra", _ALONE, "the question without a command"),
    Row("", "ui", "ra, without a prompt, or ra open", "!ra open"),
    Row("", "ask prompt query", _QUESTION, "the question without a command"),
    Row("", "run exec", _QUESTION, "!COMMAND"),
    Row("", "shell terminal", _ALONE, "!COMMAND"),
    Row("exit quit bye q", "", "nothing: ra is not running. In the interactive prompt, /quit leaves", "/quit (Ctrl-D)"),
    Row("", "stop cancel abort kill", "nothing: Ctrl-C stops a run", "nothing: Ctrl-C stops the turn"),
    Row("new", "clear reset restart", _NEW, "/clear"),
    Row(
        "resume",
        "continue load restore reopen",
        "ra -c (the latest session), or ra --resume ID; ra sessions list shows them",
        "/resume",
    ),
    Row("history", "list ls", "ra sessions list", "/sessions, or Ctrl-R for earlier prompts"),
    Row("", "show view log logs trace", "ra sessions show ID", "/context messages, or /tools"),
    Row("", "output", "ra sessions show ID", "/tools"),
    Row("", "messages", "ra context", "/context messages"),
    Row("", "fork copy branch", "ra -c --fork", "/fork"),
    Row("", "export share", "ra sessions export ID", "!ra sessions export ID"),
    Row("", "import", "ra sessions import FILE", "!ra sessions import FILE"),
    Row("", "delete remove rm", "ra sessions rm ID", "!ra sessions rm ID"),
    Row("", "save", "nothing: every session is stored; ra sessions list shows them", "nothing: every step is stored"),
    Row("", "rename title", _NAMED, _NAMED),
    Row("", "search find", "ra recall WORDS", "/recall WORDS"),
    Row("", "redo rollback revert checkpoint", "ra -c, then /undo or /rewind", "/undo, or /rewind"),
    # the window and its cost
    Row("usage stats", "spend billing credits balance quota limits", "ra cost", "/cost"),
    Row("tokens", "", "ra context, or ra cost", "/context"),
    Row("", "budget", 'ra --max-cost 0.50 "your question"; ra cost shows what was spent', "/cost"),
    Row("", "price prices pricing", 'ra models, or ra --dry-run "your question"', "/model"),
    Row("", "compress compaction summarize", "ra compact", "/compact"),
    Row("memory pins", "memories remember", "ra entry list", "/entries; /pin TEXT adds one"),
    # settings
    Row("models", "", "ra models", "/model"),
    Row("provider providers", "", "ra models, or ra doctor", "/model PROVIDER/NAME"),
    Row("", "use switch", 'ra -m NAME "your question"', "/model NAME"),
    Row("", "think reasoning effort", 'ra --thinking LEVEL "your question"', "/thinking LEVEL"),
    Row("settings", "configure preferences options env set", "ra --show-config, or ra config", "/config"),
    Row("init", "", "ra config init", "!ra config init"),
    Row("", "mode", "ra --help, under Permissions", "/edits, /thinking or /strategy"),
    Row("yolo", "auto autopilot", 'ra --edits auto "your question"', "/edits auto"),
    Row("", "plan", 'ra --edits off "your question"', "/edits off, which makes no changes"),
    Row("tools", "", "ra permissions, or /tools in the interactive prompt"),
    Row("approvals", "perms allow deny approve", "ra permissions", "/edits, or /permissions"),
    Row("", "sandbox", "ra doctor", "/permissions"),
    Row("agents", "", "ra agent", "!ra agent"),
    Row("hooks", "", "ra --show-context, and agent.middleware in ra.yaml", "!ra --show-context"),
    Row("skills", "skill", "ra --show-context", "!ra --show-context"),
    Row("mcp", "plugin plugins extensions", "ra mcp, or agent.middleware in ra.yaml", "!ra mcp list"),
    Row("vim", "", "", "nothing: the line is edited with the keys of Emacs; /help lists them"),
    Row("", "theme", "COLORFGBG='0;15' ra, for a light background", "/quit, and start ra with COLORFGBG='0;15'"),
    # work
    Row(
        "", "edit code fix", 'ra "what to change in @file"; --edits auto does not ask', "what to do, without a command"
    ),
    Row("", "commit", 'ra "commit the changes"', "commit the changes, without a command"),
    Row("", "review", 'git diff | ra "review this"', "review the changes, without a command"),
    Row("", "diff", 'git diff | ra "review this"', "!git diff"),
    Row("", "test", "", "run the tests, without a command; or !COMMAND"),
    Row("", "retry", "ra -c, then Up", "the prompt again: Up brings it back"),
    Row("", "add image upload", 'ra -f PATH "your question"', "/attach PATH, or @PATH in the prompt"),
    Row("cd", "", "", "/quit, and start ra in that folder"),
    # the program
    Row("", "commands man manual docs examples", "ra --help", "/help"),
    Row("", "demo tutorial quickstart onboarding welcome", "ra tour", "!ra tour"),
    Row("version", "about changelog", "ra --version, or ra doctor", "!ra --version"),
    Row("", "license licence", "nothing: the licence is MIT", "nothing: the licence is MIT"),
    Row("update upgrade", "", "pip install --upgrade ra-agent", "!pip install --upgrade ra-agent"),
    Row("", "uninstall", "pip uninstall ra-agent"),
    Row("", "install", "ra local install (the embedded model), or ra --install-completion"),
    Row("", "completion completions", "ra --install-completion"),
    Row("", "daemon", "ra serve", "!ra serve"),
    Row("", "gui web webui", "ra open, or ra serve", "!ra open; a page of the web is url:ADDRESS in the prompt"),
)

BY_WORD = {word: row for row in ROWS for word in f"{row.sure} {row.alone}".split()}
SURE = {word for row in ROWS for word in row.sure.split()}
