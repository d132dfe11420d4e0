"""What has the user allowed in a project for good, when asked? Rules, in a file that only the user can write."""

from pathlib import Path

from ra.config import private


class Allowed:
    def __init__(self, path: Path) -> None:
        self.path = path

    def rules(self, project: Path) -> tuple[str, ...]:
        """Raises UserError for a file that cannot be believed."""
        return tuple(self._read().get(private.name_of(project), ()))

    def add(self, project: Path, rule: str) -> None:
        known = self._read()
        rules = known.setdefault(private.name_of(project), [])
        if rule not in rules:
            rules.append(rule)
            private.write(self.path, known)

    def remove(self, project: Path, rule: str) -> bool:
        """False when it was not there."""
        known = self._read()
        if rule not in known.get(private.name_of(project), []):
            return False
        known[private.name_of(project)].remove(rule)
        private.write(self.path, known)
        return True

    def _read(self) -> dict[str, list[str]]:
        return private.read(self.path, dict[str, list[str]], again="allow it again when asked") or {}
