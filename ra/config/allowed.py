"""Keep the rules that the user allowed in a project for good, in a file that only the user can write."""

from pathlib import Path

from ra.config import private


class Allowed:
    def __init__(self, path: Path) -> None:
        self.path = path

    def rules(self, project: Path) -> tuple[str, ...]:
        """Raises UserError for a file that cannot be believed."""
        return tuple(self._read().get(private.name_of(project), ()))

    def add(self, project: Path, rule: str) -> None:
        projects = self._read()
        rules = projects.setdefault(private.name_of(project), [])
        if rule not in rules:
            rules.append(rule)
            private.write(self.path, projects)

    def remove(self, project: Path, rule: str) -> bool:
        """False when it was not there."""
        projects = self._read()
        if rule not in projects.get(private.name_of(project), []):
            return False
        projects[private.name_of(project)].remove(rule)
        private.write(self.path, projects)
        return True

    def _read(self) -> dict[str, list[str]]:
        return private.read(self.path, dict[str, list[str]], again="allow it again when asked") or {}
