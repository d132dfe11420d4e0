"""Finds instruction files, skills and commands of the user and the project, when they are first needed."""

import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ra.config import paths
from ra.config.load import Resolved
from ra.context import discovery
from ra.core.errors import UsageError
from ra.core.model import Section

if TYPE_CHECKING:
    from ra.config.foreign import Ignored
    from ra.context.commands import CommandPrompt, CustomCommand
    from ra.context.skills import Skills
    from ra.tools.tool import Tool

GUARDED = ("SKILL.md", ".claude/commands/*.md", ".claude/commands/*/*.md")
"""Files that models obey, besides instruction files. Tools ask before they write them."""

MAX_NOTES = 5
_FOLDERS = (".ra", ".agents", ".claude")


class DiscoveredFiles:
    """Finds each kind once, on first use. Nothing is found if `agent.context.enabled` is off."""

    def __init__(self, resolved: Resolved, env: Mapping[str, str]) -> None:
        self._resolved = resolved
        self._home = paths.home(env)
        self._settings_folder = paths.user_file(env).parent

    @cached_property
    def instructions(self) -> discovery.Discovered:
        resolved, settings = self._resolved, self._resolved.config.agent.context
        if not settings.enabled:
            return discovery.Discovered()
        return discovery.discover(
            resolved.cwd, resolved.root, settings.patterns, home=self._home, settings_folder=self._settings_folder
        )

    def nested(self, path: Path, given: tuple[Section, ...]) -> tuple[Section, ...]:
        """A subdirectory's instruction files, when a tool first touches something in it."""
        resolved, settings = self._resolved, self._resolved.config.agent.context
        if not settings.enabled:
            return ()
        return discovery.nested(path, resolved.cwd, resolved.root, settings.patterns, given=given).sections

    def below(self) -> list[tuple[str, str]]:
        """The instruction files of subdirectories, each with its folder: nothing of them is read yet."""
        resolved, settings = self._resolved, self._resolved.config.agent.context
        return discovery.below(resolved.cwd, resolved.root, settings.patterns) if settings.enabled else []

    @cached_property
    def skills(self) -> "Skills | None":
        """The skills; None if no folder has any, so that nothing is loaded for them."""
        if not self._resolved.config.agent.context.enabled or not self._may_have("skills"):
            return None
        from ra.context import skills

        skill_files = skills.find(skills.folders(self._way, self._resolved.root, self._home, self._settings_folder))
        return skill_files if skill_files.skills or skill_files.notes else None

    @cached_property
    def commands(self) -> "tuple[CustomCommand, ...]":
        if not self._resolved.config.agent.context.enabled or not self._may_have("commands"):
            return ()
        from ra.context import commands

        return commands.find(commands.folders(self._way, self._resolved.root, self._home, self._settings_folder))

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on what was left out of instruction files and skills, and on oddities."""
        return (*self.instructions.notes, *(self.skills.notes if self.skills else ()))

    @property
    def first_notes(self) -> tuple[str, ...]:
        """The notes that are shown at the start: a few lines, however many there are."""
        more = len(self.notes) - MAX_NOTES
        end = (f"{more} more; `ra --show-context` lists everything that is not used.",) if more > 0 else ()
        return (*self.notes[:MAX_NOTES], *end)

    def ignored(self) -> "tuple[Ignored, ...]":
        """Files for other agents that are not used, with the reason."""
        from ra.config.foreign import Ignored, ignored

        settings, waiting = self._resolved.config.agent.context, self._resolved.waiting
        files = ignored(self._way, self._resolved.root, self._home, settings.patterns)
        servers = (
            Ignored(".".join(item.key), "an MCP server that you have not trusted yet; run `ra trust`")
            for item in waiting
        )
        heads = (
            Ignored(
                f"skill {skill.name}", f"{', '.join(skill.unused)} in its front matter; your flags and rules decide"
            )
            for skill in (self.skills.skills if self.skills else ())
            if skill.unused
        )
        notes = (Ignored(*_parted(note)) for note in (*self.notes, *self.instructions.repeated, *self._resolved.notes))
        return (*files, *servers, *heads, *notes)

    @property
    def guarded(self) -> tuple[str, ...]:
        """Names and patterns of the project's files that models obey: tools ask before they write them."""
        return tuple(dict.fromkeys((*GUARDED, *(section.name for section in self.instructions.sections))))

    def skill_sections(self) -> tuple[Section, ...]:
        return self.skills.sections() if self.skills else ()

    def tools(self) -> "tuple[Tool, ...]":
        """The tool that reads skills, if there are any."""
        if self.skills is None or not any(skill.listed for skill in self.skills.skills):
            return ()
        from ra.session.skill_tool import skill_tool

        return (skill_tool(self.skills),)

    @cached_property
    def offers(self) -> tuple[tuple[str, str], ...]:
        """The name of every command and skill, with a one-line description."""
        if not self.commands and self.skills is None:
            return ()
        from ra.context import commands

        files = {command.name: commands.describe(command) for command in self.commands}
        skills = {skill.name: skill.description for skill in self.skills.skills if skill.typed} if self.skills else {}
        return tuple(sorted((skills | files).items()))

    def has_command(self, text: str) -> bool:
        """Whether a line that begins with a slash names a command or a skill."""
        return self._meant(text) is not None

    def expand(self, text: str) -> "CommandPrompt | None":
        """The prompt of a custom command, with its arguments.

        Raises UsageError for a broken file, and for a name that is nearly one: it would be paid for as a prompt.
        """
        meant = self._meant(text)
        if meant is None:
            self._refuse_near_miss(text)
            return None
        from ra.context import commands

        name, arguments = meant
        command = commands.choose(self.commands, name)
        try:
            if command is not None:
                return commands.fill(command, arguments)
            assert self.skills is not None
            skill = self.skills.find(name)
            assert skill is not None, "a command or a skill was meant"
            return commands.fill_skill(skill, arguments)
        except (OSError, ValueError) as error:
            raise UsageError(f"/{name} cannot be used: {getattr(error, 'strerror', None) or error}.") from error

    def _refuse_near_miss(self, text: str) -> None:
        if not self.offers and self.skills is None:
            return
        import difflib  # only for a slash that means nothing here

        from ra.context import commands

        name, _ = commands.typed(text) or ("", "")
        if not name or os.path.lexists(f"/{name}"):
            return
        for label, why in map(_parted, self.skills.notes if self.skills else ()):
            if Path(label).parent.name == name:
                raise UsageError(f"/{name} cannot be used: {why}.")
        if near := difflib.get_close_matches(name, [offered for offered, _ in self.offers], n=1, cutoff=0.8):
            raise UsageError(f"There is no command /{name}; did you mean /{near[0]}? Nothing was sent.")

    def _meant(self, text: str) -> tuple[str, str] | None:
        if not (self._may_have("commands") or self._may_have("skills")):
            return None
        from ra.context import commands

        typed = commands.typed(text)
        if typed is None:
            return None
        is_command = commands.choose(self.commands, typed[0]) is not None
        skill = self.skills.find(typed[0]) if self.skills else None
        return typed if is_command or (skill is not None and skill.typed) else None

    @property
    def _way(self) -> list[Path]:
        return paths.project_folders(self._resolved.cwd)

    def _may_have(self, kind: str) -> bool:
        """Whether one of the folders exists. Start-up time: this takes a few system calls and no import."""
        bases = [*self._way, *([self._home] if self._home else [])]
        places = (os.path.join(base, folder, kind) for base in bases for folder in _FOLDERS)  # noqa: PTH118 - quick
        return os.path.isdir(self._settings_folder / kind) or any(map(os.path.isdir, places))  # noqa: PTH112 - quick


def _parted(note: str) -> tuple[str, str]:
    """A note such as `AGENTS.md: not text, not read`, split into the name and the problem."""
    name, _, why = note.partition(": ")
    return (name, why) if why else ("", note)
