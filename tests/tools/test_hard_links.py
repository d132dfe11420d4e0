"""Files with several names: what compilers and package managers link in the project is ordinary, the rest is not."""

import os
import shutil
from pathlib import Path

import pytest

from ra.tools.sandbox import bubblewrap
from ra.tools.sandbox.box import Host
from ra.tools.sandbox.scan import Scan
from tests.tools.world import people, world


def test_a_file_with_all_its_names_in_the_project_is_no_link_to_elsewhere(tmp_path: Path) -> None:
    root = tmp_path / "project"
    (root / "deps").mkdir(parents=True)
    (root / "app").write_text("x")
    (root / "other").write_text("x")
    scan = Scan(str(root), ())
    assert scan.look().twins == set()
    os.link(root / "app", root / "deps/app")
    os.link(root / "other", tmp_path / "other")
    (root / "deps/new").touch()
    (root / "app2").touch()
    findings = scan.look()
    assert findings.twins == {frozenset({str(root / "app"), str(root / "deps/app")})}
    assert findings.linked == {str(root / "other")}


def test_names_are_counted_anew_at_every_look(tmp_path: Path) -> None:
    root = tmp_path / "project"
    for number in range(300):  # too many for a look at all of them to be cheap
        (root / str(number)).mkdir(parents=True)
    (root / "1/app").write_text("x")
    scan = Scan(str(root), ())
    scan.look()
    os.link(root / "1/app", root / "2/app")  # the folder 1 does not change by that
    inside = scan.look()
    os.link(root / "1/app", tmp_path / "app")
    outside = scan.look()
    (tmp_path / "app").unlink()
    (root / "2/app").unlink()
    alone = scan.look()
    assert (inside.linked, len(inside.twins)) == (set(), 1)
    assert outside.linked == {str(root / "1/app"), str(root / "2/app")}
    assert alone.linked == set()


def test_a_name_of_a_protected_file_is_protected(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("rules")
    (tmp_path / "hook.py").write_text("x")
    for name in ("AGENTS.md", "hook.py"):
        os.link(tmp_path / name, tmp_path / f"{name}.twin")
    findings = Scan(str(tmp_path), ("AGENTS.md",)).look()
    assert findings.linked == set()
    twins = findings.with_closed_twins([str(tmp_path / "hook.py")]).linked
    assert {Path(path).name for path in twins} == {"AGENTS.md", "AGENTS.md.twin", "hook.py", "hook.py.twin"}


@pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is not installed")
@pytest.mark.parametrize("uid", people())
def test_what_a_build_links_can_be_built_again_and_removed(uid: int) -> None:
    with world(uid) as made:
        os.link(made.project / "AGENTS.md", made.project / "twin.md")
        box = bubblewrap.find(made.place(), Host())
        assert box
        made.own(box)
        build = "mkdir -p out/deps && echo {} > out/deps/app && ln -f out/deps/app out/app && cat out/app"
        outputs = [made.run(box, build.format(number)) for number in (1, 2)]
        outputs.append(made.run(box, "rm -r out && echo removed"))
        made.run(box, "echo obey > twin.md; rm -f twin.md; echo obey > linked.txt")
        box.close()
        assert outputs == ["1\n", "2\n", "removed\n"]
        assert made.harm() == []
