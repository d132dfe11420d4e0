from pathlib import Path

from ra.tools.policy.paths import Project
from ra.tools.sandbox.layout import plan
from ra.tools.sandbox.seatbelt import profile


def test_the_profile_writes_only_the_project_and_hides_credentials(tmp_path: Path) -> None:
    root, home = tmp_path / 'pro"ject', tmp_path / "home"
    (root / ".git").mkdir(parents=True)
    (home / ".ssh").mkdir(parents=True)
    place = Project(str(root), str(root), str(home))
    layout = plan(place, ())._replace(hidden=(str(home / ".ssh"),))
    lines = profile(layout, "/private/tmp/ra", ("AGENTS.md",), (str(root / ".env"),)).splitlines()
    quoted = str(root).replace('"', '\\"')
    assert lines[:2] == ["(version 1)", "(deny default)"]
    assert "network" not in " ".join(line for line in lines if line.startswith("(allow"))
    written = lines.index(f'(allow file-write* (subpath "/private/tmp/ra") (subpath "{quoted}"))')
    for denied in (
        f'(deny file-write* (subpath "{quoted}/.git/hooks"))',
        f'(deny file-write* (subpath "{quoted}/.git/config"))',
        f'(deny file-write* (subpath "{quoted}/.ra"))',
        f'(deny file-write* (subpath "{quoted}/AGENTS.md"))',
        f'(deny file-write-unlink (literal "{quoted}/.git"))',
        f'(deny file-read* file-write* (subpath "{home}/.ssh"))',
        f'(deny file-read* file-write* (subpath "{quoted}/.env"))',
    ):
        assert lines.index(denied) > written


def test_a_home_directory_is_not_written(tmp_path: Path) -> None:
    place = Project(str(tmp_path), str(tmp_path), str(tmp_path))
    lines = profile(plan(place, ()), "/private/tmp/ra", ("AGENTS.md",)).splitlines()
    assert '(allow file-write* (subpath "/private/tmp/ra"))' in lines
