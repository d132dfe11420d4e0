import os
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from ra.tools.process import Launch
from ra.tools.sandbox import landlock_box, seccomp, warden
from ra.tools.sandbox.landlock import FIRST_SAFE_ABI, abi
from tests.tools.escapes import ALL
from tests.tools.world import PYTHON, World, check_a_repository_beside_its_work, people, world

pytestmark = pytest.mark.skipif(abi() < FIRST_SAFE_ABI or not seccomp.supported(), reason="no Landlock here")

BEYOND_IT = {"secrets of the project"} | {name for name in ALL if "hard link" in name}
"""What it cannot stop: listed in its limits, and asked for or refused instead."""


def box_in(made: World) -> landlock_box.LandlockBox:
    (made.project / "linked.txt").unlink(missing_ok=True)
    assert landlock_box.find(made.place(), ())
    box = ForAnybody(made.place(), (str(made.data),))
    if made.uid != os.getuid():
        os.chown(box.private_tmp, made.uid, made.uid)
    return box


WARDEN = f"""\
import marshal, sys
with open(int(sys.argv[1]), "rb") as file:
    order = marshal.load(file)
exec(open({warden.__file__!r}).read())
main(order)
"""


class ForAnybody(landlock_box.LandlockBox):
    """An ordinary user may not reach the interpreter of root, but that of the system; the warden runs in either.

    From its source, since the other may be of another version.
    """

    def launch(self, argv: Sequence[str], cwd: str) -> Launch:
        launch = super().launch(argv, cwd)
        return msgspec.structs.replace(launch, argv=[PYTHON, "-I", "-S", "-c", WARDEN, launch.argv[-1]])


@pytest.mark.parametrize("uid", people())
def test_what_it_can_stop_it_stops(uid: int) -> None:
    with world(uid) as made:
        box = box_in(made)
        harm = made.first_harm(box, {name: command for name, command in ALL.items() if name not in BEYOND_IT})
        box.close()
    assert harm == {}


REPLACED = {
    "by a file": "rm -rf .git; mkdir evil; echo 'gitdir: evil' > .git",
    "by a link": "mv .git g; ln -s g .git",
    "by nothing": "rm -rf .git",
    "by another folder": "mv .git g; mkdir -p .git/hooks; echo x > .git/hooks/pre-commit",
}


@pytest.mark.parametrize("how", REPLACED)
def test_a_repository_that_is_replaced_brings_no_hooks(how: str) -> None:
    """What a first command puts in its place, a second one could fill."""
    with world(os.getuid()) as made:
        box = box_in(made)
        made.run(box, REPLACED[how])
        for folder in ("g", "evil", ".git"):
            made.run(
                box, f"mkdir -p {folder}/hooks; echo x > {folder}/hooks/pre-commit; echo '[core]' >> {folder}/config"
            )
        assert made.harm() == []
        assert not (made.project / ".git").is_symlink()
        box.close()


def test_a_repository_beside_its_work_gets_no_hooks() -> None:
    check_a_repository_beside_its_work(box_in)


def test_a_project_with_hard_links_is_trouble() -> None:
    with world(os.getuid()) as made:
        box = box_in(made)
        (made.project / ".env").unlink()
        assert box.trouble == ""
        os.link(made.outside / "linked.txt", made.project / "again.txt")
        assert "again.txt has another hard link" in box.trouble
        box.close()


def test_a_project_with_secrets_is_trouble() -> None:
    """A command could read what the file tools ask for."""
    with world(os.getuid()) as made:
        box = box_in(made)
        assert box.trouble == f"{made.project}/.env may hold secrets, which this sandbox cannot hide"
        box.close()


def test_ordinary_work_goes_on() -> None:
    with world(os.getuid()) as made:
        box = box_in(made)
        command = (
            "set -e; echo x > new.txt; mkdir -p src; mv new.txt src/; git add src; git commit -qm first; "
            "git log --oneline | wc -l; echo z > $TMPDIR/note; cat $TMPDIR/note; "
        )
        assert made.run(box, command + made.filled("{python} -c 'print(6 * 7)'")).split() == ["1", "z", "42"]
        box.close()


def test_the_limits_are_told() -> None:
    with world(os.getuid()) as made:
        box = box_in(made)
        assert any("hard-linked" in limit for limit in box.limits)
        assert any("put back" in limit for limit in box.limits)
        box.close()
        assert not Path(box.private_tmp).exists()


def test_an_environment_that_ra_runs_from_is_trouble() -> None:
    with world(os.getuid()) as made:
        (made.project / ".env").unlink()
        (made.project / "linked.txt").unlink()
        (made.project / "venv").mkdir()
        (made.project / "venv/pyvenv.cfg").write_text("")
        place = msgspec.structs.replace(made.place(), runs=(str(made.project / "venv"),))
        box = landlock_box.LandlockBox(place, ())
        assert box.trouble == f"ra itself runs from {made.project / 'venv'}, which this sandbox cannot protect"
        box.close()
