"""Settings of other agents as ra's keys: what has a place is shown, what has none is told, what is broken too."""

import json
from pathlib import Path

from ra.config.importing import settings_of


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_claudes_rules_model_and_servers(tmp_path: Path) -> None:
    home, root = tmp_path / "home", tmp_path / "p"
    permissions = {"allow": ["Bash(git diff:*)", "Weird(("], "deny": ["Read(.env)"], "defaultMode": "plan"}
    put(home / ".claude/settings.json", json.dumps({"model": "opus", "permissions": permissions, "hooks": {"x": []}}))
    put(root / ".claude/settings.local.json", "{")
    server = {"type": "stdio", "command": "npx", "args": ["fs"]}
    put(
        home / ".claude.json",
        json.dumps({"mcpServers": {"a": server}, "projects": {str(root): {"mcpServers": {"b": 3}}}}),
    )
    imported = settings_of("claude", home, root)
    assert imported.settings == {
        "agent": {
            "model": "opus",
            "permissions": {"rules": [{"allow": "Bash(git diff:*)"}, {"deny": "Read(.env)"}]},
            "mcpServers": [{"name": "a", "command": "npx", "args": ["fs"]}],
        }
    }
    assert len(imported.files) == 2
    words = " ".join(imported.notes)
    for part in ("Weird", "defaultMode is not imported", "hooks is not imported", "cannot be read", "the server b"):
        assert part in words


def test_codexes_model_effort_and_servers(tmp_path: Path) -> None:
    text = 'model = "gpt-5"\nmodel_reasoning_effort = "xhigh"\nsandbox_mode = "x"\n'
    text += '[mcp_servers.docs]\nurl = "https://example.com/mcp"\nbearer_token_env_var = "T"\n'
    put(tmp_path / ".codex/config.toml", text)
    put(tmp_path / ".codex/AGENTS.md", "mine")
    imported = settings_of("codex", tmp_path, tmp_path / "p")
    headers = {"Authorization": "Bearer ${T}"}
    assert imported.settings == {
        "agent": {
            "model": "gpt-5",
            "thinking": "high",
            "mcpServers": [{"name": "docs", "url": "https://example.com/mcp", "headers": headers}],
        }
    }
    assert len(imported.notes) == 2


def test_without_files_there_is_nothing(tmp_path: Path) -> None:
    assert settings_of("claude", tmp_path, tmp_path).files == ()
