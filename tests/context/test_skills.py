"""Skills and slash commands that lie in files: what is found, what is told, what a broken one costs."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ra.context import commands, frontmatter, skills

HEAD = "---\nname: {}\ndescription: {}\n---\n{}"


def put(root: Path, name: str, text: str, *, folder: str = ".claude/skills") -> Path:
    path = root / folder / name / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return path


def found(root: Path, home: Path | None = None) -> skills.Skills:
    return skills.find(skills.folders([root], root, home, home / ".config/ra" if home else None))


def test_name_and_description_are_sections_and_the_body_is_not(tmp_path: Path) -> None:
    put(tmp_path, "pdf", HEAD.format("pdf", "Work with PDF files.", "# PDF\nUse pypdf."))
    sections = found(tmp_path).sections()
    assert [(section.name, section.tier) for section in sections] == [("skills", "stable"), ("skill pdf", "stable")]
    assert sections[1].content == "- pdf: Work with PDF files."


def test_the_body_comes_with_the_names_of_its_files_and_each_can_be_read(tmp_path: Path) -> None:
    path = put(tmp_path, "pdf", HEAD.format("pdf", "x", "Use pypdf."))
    (path.parent / "references").mkdir()
    (path.parent / "references/forms.md").write_text("about forms")
    skill = found(tmp_path).skills[0]
    assert "Use pypdf." in skills.body(skill)
    assert "references/forms.md" in skills.body(skill)
    assert skills.file_of(skill, "references/forms.md") == "about forms"
    with pytest.raises(ValueError, match="does not lie in the skill's folder"):
        skills.file_of(skill, "../../../secret")


def test_the_projects_skill_stands_before_the_users_of_the_same_name(tmp_path: Path) -> None:
    root, home = tmp_path / "p", tmp_path / "home"
    put(root, "pdf", HEAD.format("pdf", "the project's", ""), folder=".agents/skills")
    put(home, "pdf", HEAD.format("pdf", "mine", ""))
    put(home, "mine", HEAD.format("mine", "only mine", ""), folder=".config/ra/skills")
    result = found(root, home)
    assert [(skill.name, skill.description, skill.origin) for skill in result.skills] == [
        ("mine", "only mine", "user"),
        ("pdf", "the project's", "project"),
    ]
    assert result.notes == (".claude/skills/pdf/SKILL.md: another skill is named pdf and comes first; left out",)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("---\nname: x\n", "does not end"),
        ("---\nname: x\nno key\n---\nbody", "not `key: value`"),
        ("---\nname: a b/c\ndescription: y\n---\n", "must be of letters"),
        ("---\nname: x\n---\n# Only a title\n", "no description"),
        ("", "no description"),
        ("x" * (skills.MAX_BYTES + 1), "more than"),
        ("a\0b", "not text"),
    ],
)
def test_a_broken_skill_is_left_out_with_a_sentence_and_the_others_stay(tmp_path: Path, text: str, why: str) -> None:
    put(tmp_path, "broken", text)
    put(tmp_path, "fine", HEAD.format("fine", "works", ""))
    result = found(tmp_path)
    assert [skill.name for skill in result.skills] == ["fine"]
    assert len(result.notes) == 1
    assert why in result.notes[0]


def test_a_skill_that_leads_out_of_the_project_is_not_read(tmp_path: Path) -> None:
    outside = put(tmp_path / "elsewhere", "evil", HEAD.format("evil", "x", "secret"))
    root = tmp_path / "p"
    (root / ".claude/skills").mkdir(parents=True)
    (root / ".claude/skills/evil").symlink_to(outside.parent)
    result = found(root)
    assert result.skills == ()
    assert "leads out of" in result.notes[0]


def test_the_descriptions_of_many_skills_stay_within_their_budget(tmp_path: Path) -> None:
    for number in range(30):
        put(tmp_path, f"s{number:02}", HEAD.format(f"s{number:02}", "word " * 150, ""))
    result = found(tmp_path)
    assert sum(len(section.content) for section in result.sections()) < skills.ALL_DESCRIPTIONS + 1000
    assert len(result.sections()) == 31
    assert "left out" in result.notes[0]


def test_a_skill_for_people_only_is_not_told_to_the_model(tmp_path: Path) -> None:
    put(tmp_path, "deploy", "---\nname: deploy\ndescription: x\ndisable-model-invocation: true\n---\nGo.")
    assert found(tmp_path).sections() == ()
    assert found(tmp_path).find("deploy") is not None


# --- commands ---


def command(root: Path, name: str, text: str) -> commands.CustomCommand:
    path = root / ".claude/commands" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return commands.find(commands.folders([root], root, None, None))[0]


def test_a_command_is_found_by_its_whole_name_and_by_its_last_part(tmp_path: Path) -> None:
    made = command(tmp_path, "git/review.md", "Review.")
    assert commands.choose((made,), "git:review") == made
    assert commands.choose((made,), "review") == made
    assert commands.choose((made,), "git") is None


@pytest.mark.parametrize(
    ("text", "arguments", "prompt"),
    [
        ("Review $1 against $2.", "a.py 'b c.py'", "Review a.py against b c.py."),
        ("Fix $ARGUMENTS now.", "issue 12", "Fix issue 12 now."),
        ("Just do it.", "", "Just do it."),
        ("Just do it.", "soon", "Just do it.\n\nArguments: soon"),
        ("Say $ARGUMENTS", "it's", "Say it's"),
        ("costs $10 and $1", "x", "costs $10 and x"),
    ],
)
def test_arguments_take_their_places(text: str, arguments: str, prompt: str) -> None:
    assert commands.filled(text, arguments) == prompt


def test_what_a_command_would_run_is_left_to_the_model(tmp_path: Path) -> None:
    made = command(tmp_path, "pr.md", "---\nallowed-tools: Bash(*)\n---\nDiff: !`git diff`")
    filled = commands.fill(made, "")
    assert filled.text == "Diff: (run this first: `git diff`)"
    assert len(filled.notes) == 2


def test_a_command_file_of_ten_megabytes_is_a_sentence(tmp_path: Path) -> None:
    made = command(tmp_path, "huge.md", "x" * 10_000_000)
    assert "10,000,000 bytes" in commands.describe(made)
    with pytest.raises(ValueError, match="10,000,000 bytes"):
        commands.fill(made, "")


@pytest.mark.parametrize("text", ["/etc/passwd is what?", "what is /x", "/", "/ x", "//x"])
def test_a_prompt_about_a_path_is_no_command(text: str) -> None:
    typed = commands.typed(text)
    assert typed is None or typed[0] not in ("etc", "x")


# --- heads ---


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("a: b\nc-d: e: f # note", {"a": "b", "c-d": "e: f"}),
        ("a: 'it''s'\nb: \"x \\\"y\\\"\"", {"a": "it's", "b": 'x "y"'}),
        ("a: >\n  one\n  two\nb: |\n  one\n  two", {"a": "one two", "b": "one\ntwo"}),
        ("a:\n  - x\n  - y\n# comment\nb: z", {"a": "x y", "b": "z"}),
        ("description: first\n  and more", {"description": "first and more"}),
    ],
)
def test_heads_as_people_write_them(text: str, fields: dict[str, str]) -> None:
    assert frontmatter.split(f"---\n{text}\n---\nbody") == (fields, "body")


@given(st.text())
def test_any_text_has_a_head_or_is_refused_with_a_reason(text: str) -> None:
    try:
        fields, body = frontmatter.split(text)
    except frontmatter.BrokenHead:
        return
    assert isinstance(body, str)
    assert all(fields)
