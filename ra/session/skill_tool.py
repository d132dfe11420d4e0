"""Skill: the tool by which a model reads what a skill says."""

from typing import Annotated

import msgspec
from msgspec import Meta

from ra.context import skills
from ra.tools.tool import Mistake, Say, Tool, declare


class SkillArgs(msgspec.Struct):
    name: str
    file: Annotated[str, Meta(description="Read this file of the skill instead")] = ""


def skill_tool(available: skills.Skills) -> Tool:
    async def run(args: SkillArgs, say: Say) -> str:
        skill = available.find(args.name.strip().removeprefix("/"))
        if skill is None:
            names = ", ".join(skill.name for skill in available.skills if skill.listed)
            raise Mistake(f"There is no skill {args.name!r}. Skills: {names}.")
        try:
            return skills.file_of(skill, args.file) if args.file else skills.body(skill)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise Mistake(f"The skill {skill.name} cannot be read: {why}.") from error

    return declare(SkillArgs, run, name="Skill", description="Read a skill's instructions.", reads_only=True, free=True)
