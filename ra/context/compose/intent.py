"""Classifies a request by rules: words of the message, no model call."""

import re
from typing import NamedTuple

SCANNED = 4_000  # characters of the message that are looked at


class Intent(NamedTuple):
    name: str
    hint: str


# The first rule that matches decides. Words of the languages that our users write most; the rest is told by its signs.
_RULES: tuple[tuple[Intent, str], ...] = (
    (
        Intent("greeting", "Nothing is asked yet; answer in a sentence."),
        r"^\s*(hi|hello|hey|thanks|thank you|hallo|danke|bonjour|merci|hola|gracias|привет|спасибо|"
        r"你好|谢谢|こんにちは|ありがとう)\W*$",
    ),
    (
        Intent("repair", "Find the cause before changing anything, and say how it was checked."),
        r"\b(fix|bug|broken|fails?|failing|crash\w*|error|exception|traceback|regression|debug|repair|kaputt|fehler|"
        r"erreur|corrige\w*|arregla\w*|исправ\w*|ошибк\w*)\b|修复|错误|バグ|修正|エラー",
    ),
    (
        Intent("review", "Read first; name findings with their places, the worst first."),
        r"\b(review|audit|critique|feedback|check|prüfe|vérifie|revisa|проверь)\b|审查|レビュー",
    ),
    (
        Intent("change", "Make the change and nothing beside it; say what was changed."),
        r"\b(add|implement|create|write|build|make|change|rename|refactor|remove|delete|update|move|migrate|generate|"
        r"schreib\w*|erstelle|ändere|ajoute|écris|crée|añade|crea|escribe|добавь|напиши|создай)\b|实现|添加|编写|创建|追加|作成",
    ),
    (
        Intent("run", "Run it, then report what happened, failures included."),
        r"\b(run|start|stop|restart|deploy|install|execute|test|starte|lance|ejecuta|запусти)\b|运行|执行|実行",
    ),
    (
        Intent("search", "Look before answering; say where it was found."),
        r"\b(find|search|where|list|show|look for|which file|suche|finde|wo|trouve|où|busca|dónde|найди|где)\b"
        r"|查找|搜索|探して",
    ),
    (
        Intent("explain", "Explain at the level of the question, from what is really there."),
        r"\b(explain|describe|summari[sz]e|how does|what does|why|erkläre|warum|explique|pourquoi|explica|"
        r"объясни|почему)\b|解释|为什么|説明|なぜ",
    ),
    (Intent("question", "Answer it directly."), r"[?？]\s*$|^\s*(what|who|when|is|are|can|do|does|was|wer|wann|ist)\b"),
)
OTHER = Intent("other", "Do what the message says.")


# Names are no verbs: `see @src/deploy.py`, `url:https://example.com/install`, "what is `make`?".
_NAMES = re.compile(r"@\S+|\w+://\S+|`[^`\n]*`|\S+/\S+")


def classify(text: str) -> Intent:
    sample = _NAMES.sub(" ", text[:SCANNED]).strip()
    return next((intent for intent, rule in _RULES if re.search(rule, sample, re.IGNORECASE)), OTHER)
