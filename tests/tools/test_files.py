import base64
import codecs
import os
import shutil
import stat
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ra.core.messages import Image
from ra.tools.files import MAX_EDIT_BYTES, replace_file
from ra.tools.tool import Mistake
from ra.tools.undo import KEPT_BYTES, Undo
from tests.tools.kit import Kit

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.fixture
def kit(tmp_path: Path) -> Kit:
    root = tmp_path / "project"
    root.mkdir()
    return Kit(root)


# Read


def test_read_gives_a_small_file_as_it_is(kit: Kit) -> None:
    (kit.root / "a.txt").write_text("one\ntwo\n")
    assert kit.text("Read", path="a.txt") == "one\ntwo\n"


def test_read_gives_a_range_and_says_how_to_go_on(kit: Kit) -> None:
    (kit.root / "a.txt").write_text("".join(f"{n}\n" for n in range(1, 11)))
    assert kit.text("Read", path="a.txt", offset=3, limit=2) == "3\n4\n[lines 3-4 of 10; go on with offset 5]"
    assert kit.text("Read", path="a.txt", offset=9) == "9\n10\n[lines 9-10 of 10]"
    assert "has 10 lines" in kit.error("Read", path="a.txt", offset=11)


def test_read_bounds_a_huge_file_and_a_line_without_end(kit: Kit) -> None:
    (kit.root / "long.txt").write_bytes(b"x" * 3_000_000)
    assert len(kit.text("Read", path="long.txt")) < 300_000
    with (kit.root / "huge.txt").open("wb") as file:
        file.seek(30_000_000)
        file.write(b"end")
    (kit.root / "huge.txt").write_bytes(b"line\n" * 5_000_000)
    text = kit.text("Read", path="huge.txt", offset=4_000_000, limit=2)
    assert text == "line\nline\n[lines 4000000-4000001 of a large file; go on with offset 4000002]"


def test_read_shows_an_image(kit: Kit) -> None:
    (kit.root / "a.png").write_bytes(PNG)
    assert kit.done("Read", path="a.png").result.content == (Image("image/png", PNG),)


def test_read_turns_a_notebook_into_text(kit: Kit) -> None:
    (kit.root / "n.ipynb").write_text(
        '{"cells": [{"cell_type": "code", "source": ["x = 1\\n", "x"], "outputs": '
        '[{"data": {"text/plain": ["1"], "image/png": "AAAA"}}]}, {"cell_type": "markdown", "source": "# Hi"}]}'
    )
    assert kit.text("Read", path="n.ipynb") == (
        "[cell 1: code]\nx = 1\nx\n\n[output]\n1\n(image/png left out)\n\n[cell 2: markdown]\n# Hi"
    )


def test_read_turns_a_pdf_into_text(kit: Kit) -> None:
    (kit.root / "a.pdf").write_bytes(pdf("Hello PDF"))
    assert "Hello PDF" in kit.text("Read", path="a.pdf")
    (kit.root / "broken.pdf").write_bytes(b"%PDF-1.4 nonsense")
    assert "cannot be read as a PDF" in kit.error("Read", path="broken.pdf")


def pdf(text: str) -> bytes:
    stream = f"BT /F1 24 Tf 72 720 Td ({text}) Tj ET".encode()
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(stream), stream),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    out, places = bytearray(b"%PDF-1.4\n"), []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj%s\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 6\n0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % place for place in places)
    return bytes(out + b"trailer<</Size 6/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % start)


def test_read_refuses_what_is_no_text_with_a_reason(kit: Kit) -> None:
    (kit.root / "a.bin").write_bytes(b"\x7fELF\0\0")
    os.mkfifo(kit.root / "pipe")
    (kit.root / "dir").mkdir()
    assert "binary file" in kit.error("Read", path="a.bin")
    assert "named pipe" in kit.error("Read", path="pipe")
    assert "folder" in kit.error("Read", path="dir")


def test_read_names_files_that_may_be_meant(kit: Kit) -> None:
    (kit.root / "config.toml").touch()
    assert "Did you mean config.toml?" in kit.error("Read", path="confg.toml")


def test_read_takes_other_encodings(kit: Kit) -> None:
    (kit.root / "a.txt").write_bytes(codecs.BOM_UTF16_LE + "grüß\n".encode("utf-16-le"))
    (kit.root / "b.txt").write_bytes(b"a\xffb\n")
    (kit.root / "c.txt").write_bytes(codecs.BOM_UTF8 + b"x\n")
    assert kit.text("Read", path="a.txt") == "grüß\n"
    assert kit.text("Read", path="b.txt") == "a\ufffdb\n"
    assert kit.text("Read", path="c.txt") == "x\n"


def test_odd_names_are_read_and_listed(kit: Kit) -> None:
    (kit.root / "a\nb.txt").write_text("newline")
    Path(os.fsdecode(os.fsencode(kit.root) + b"/bad\xff")).write_text("x")
    assert kit.text("Read", path="a\nb.txt") == "newline"
    assert kit.text("LS") == '"a\\nb.txt"\nbad\ufffd'
    assert "No file can have this name" in kit.error("Read", path="\ud800")
    assert "NUL" in kit.error("Read", path="a\0b")


# Write


def test_write_makes_folders_and_keeps_the_mode(kit: Kit) -> None:
    assert kit.text("Write", path="a/b/c.sh", content="one\n") == "Created a/b/c.sh (1 lines)."
    path = kit.root / "a/b/c.sh"
    path.chmod(0o755)
    assert kit.text("Write", path="a/b/c.sh", content="two\n") == "Replaced a/b/c.sh (1 lines)."
    assert path.read_text() == "two\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o755
    assert sorted(p.name for p in path.parent.iterdir()) == ["c.sh"]


def test_write_does_not_write_through_a_hard_link(kit: Kit) -> None:
    outside = kit.root.parent / "outside.txt"
    outside.write_text("untouched")
    os.link(outside, kit.root / "linked.txt")
    kit.text("Write", path="linked.txt", content="new")
    assert outside.read_text() == "untouched"


def test_write_follows_a_link_inside_the_project(kit: Kit) -> None:
    (kit.root / "real.txt").write_text("old")
    (kit.root / "link.txt").symlink_to("real.txt")
    kit.text("Write", path="link.txt", content="new")
    assert (kit.root / "link.txt").is_symlink()
    assert (kit.root / "real.txt").read_text() == "new"


# Edit


def test_edit_replaces_exact_text(kit: Kit) -> None:
    (kit.root / "a.py").write_text("a = 1\nb = 2\n")
    assert (
        kit.text("Edit", path="a.py", old_string="b = 2", new_string="b = 3") == "Edited a.py: 1 replacement (line 2)."
    )
    assert (kit.root / "a.py").read_text() == "a = 1\nb = 3\n"


def test_edit_wants_unique_text_unless_all_is_meant(kit: Kit) -> None:
    (kit.root / "a.py").write_text("x\ny\nx\n")
    assert "2 times (lines 1, 3)" in kit.error("Edit", path="a.py", old_string="x", new_string="z")
    assert (kit.root / "a.py").read_text() == "x\ny\nx\n"
    kit.text("Edit", path="a.py", old_string="x", new_string="z", replace_all=True)
    assert (kit.root / "a.py").read_text() == "z\ny\nz\n"


def test_several_edits_are_made_in_order_all_or_none(kit: Kit) -> None:
    (kit.root / "a.py").write_text("one two")
    edits = [{"old_string": "one", "new_string": "1"}, {"old_string": "1 two", "new_string": "12"}]
    kit.text("Edit", path="a.py", edits=edits)
    assert (kit.root / "a.py").read_text() == "12"
    edits = [{"old_string": "12", "new_string": "x"}, {"old_string": "nowhere", "new_string": "y"}]
    assert "edit 2: old_string is not in the file" in kit.error("Edit", path="a.py", edits=edits)
    assert (kit.root / "a.py").read_text() == "12"


def test_edit_says_what_is_near(kit: Kit) -> None:
    (kit.root / "a.py").write_text("def f(x):\n    return  x + 1\n")
    assert "White space differs; line 2" in kit.error("Edit", path="a.py", old_string="return x + 1", new_string="y")
    assert "most similar line is 1: def f(x):" in kit.error("Edit", path="a.py", old_string="def f(y):", new_string="z")


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a\r\nb\r\n", "a\nb", "x\ny", b"x\r\ny\r\n"),
        (b"a\r\nb\r\n", "b", "c\nd", b"a\r\nc\r\nd\r\n"),
        (b"a\nb", "b", "c", b"a\nc"),
        (b"\xef\xbb\xbfa\n", "a", "b", b"\xef\xbb\xbfb\n"),
        (b"\xffa\n", "a", "b", b"\xffb\n"),
        (b"a\nb\r\nc\nd\n", "c\nd", "e", b"a\nb\r\ne\n"),
        (codecs.BOM_UTF16_BE + "aé".encode("utf-16-be"), "é", "e", codecs.BOM_UTF16_BE + "ae".encode("utf-16-be")),
    ],
)
def test_edit_keeps_line_ends_bom_and_odd_bytes(kit: Kit, before: bytes, old: str, new: str, after: bytes) -> None:
    path = kit.root / "a.txt"
    path.write_bytes(before)
    path.chmod(0o640)
    kit.text("Edit", path="a.txt", old_string=old, new_string=new)
    assert path.read_bytes() == after
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_edit_with_nothing_to_replace_creates_a_file_but_no_more(kit: Kit) -> None:
    kit.text("Edit", path="new.txt", old_string="", new_string="hello")
    assert (kit.root / "new.txt").read_text() == "hello"
    assert "old_string is empty" in kit.error("Edit", path="new.txt", old_string="", new_string="x")
    assert "are the same" in kit.error("Edit", path="new.txt", old_string="hello", new_string="hello")


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=80), st.sampled_from([b"\n", b"\r\n"]))
def test_an_edit_changes_nothing_but_what_it_names(
    tmp_path_factory: pytest.TempPathFactory, noise: bytes, end: bytes
) -> None:
    noise = noise.replace(b"\0", b"").replace(b"NEEDLE", b"")
    if noise.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return
    kit = Kit(tmp_path_factory.mktemp("edit"))
    (kit.root / "a").write_bytes(noise + end + b"NEEDLE" + end + noise)
    kit.text("Edit", path="a", old_string="NEEDLE", new_string="thread")
    assert (kit.root / "a").read_bytes() == noise + end + b"thread" + end + noise


# Undo


def test_undo_restores_what_the_last_turn_changed(kit: Kit) -> None:
    (kit.root / "a.txt").write_text("one")
    kit.box.undo.begin_turn()
    kit.text("Write", path="a.txt", content="two")
    kit.box.undo.begin_turn()
    kit.text("Edit", path="a.txt", old_string="two", new_string="three")
    kit.text("Write", path="a.txt", content="four")
    kit.text("Write", path="new.txt", content="x")
    assert [line.split()[0] for line in kit.box.undo.restore_last()] == ["restored", "removed"]
    assert (kit.root / "a.txt").read_text() == "two"
    assert not (kit.root / "new.txt").exists()
    kit.box.undo.restore_last()
    assert (kit.root / "a.txt").read_text() == "one"
    assert kit.box.undo.restore_last() == []


def test_undo_leaves_what_somebody_else_changed_since(kit: Kit) -> None:
    kit.text("Write", path="a.txt", content="mine")
    (kit.root / "a.txt").write_text("theirs")
    assert "changed since" in kit.box.undo.restore_last()[0]
    assert (kit.root / "a.txt").read_text() == "theirs"


# LS


def test_ls_lists_folders_links_and_limits(kit: Kit) -> None:
    (kit.root / "sub").mkdir()
    (kit.root / "a.txt").touch()
    (kit.root / "l").symlink_to("a.txt")
    assert kit.text("LS") == "a.txt\nl -> a.txt\nsub/"
    assert kit.text("LS", path="sub") == "(The folder is empty.)"
    assert "No such file" in kit.error("LS", path="nowhere")
    for number in range(1100):
        (kit.root / f"sub/{number}").touch()
    assert kit.text("LS", path="sub").endswith("[100 more; use Glob]")


# What is no file to change


def test_write_leaves_what_is_no_regular_file(kit: Kit) -> None:
    (kit.root / "folder").mkdir()
    os.mkfifo(kit.root / "pipe")
    for name, kind in (("folder", "a folder"), ("pipe", "a named pipe")):
        assert f"is {kind}" in kit.error("Write", path=name, content="x")
        with pytest.raises(Mistake, match=f"is {kind}"):
            replace_file(str(kit.root / name), b"x")


def test_a_name_that_is_too_long_is_told_in_the_systems_words(kit: Kit) -> None:
    assert kit.error("Write", path="x" * 300, content="x").endswith("File name too long.")


def test_edit_leaves_a_file_too_large_for_memory(kit: Kit) -> None:
    with (kit.root / "large").open("wb") as file:
        file.truncate(MAX_EDIT_BYTES + 1)
    assert "are changed with Bash" in kit.error("Edit", path="large", old="a", new="b")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else and come back")
def test_a_read_only_file_is_not_replaced() -> None:
    folder = Path(tempfile.mkdtemp())  # pytest's own lies below folders of root
    path = folder / "fixed.txt"
    path.write_text("as it is")
    path.chmod(0o444)
    for one in (folder, path):
        os.chown(one, 65534, 65534)
    try:
        os.setresuid(65534, 65534, 0)
        with pytest.raises(Mistake, match="is read-only"):
            replace_file(str(path), b"changed")
    finally:
        os.setresuid(0, 0, 0)
        text = path.read_text()
        shutil.rmtree(folder)
    assert text == "as it is"


def test_undo_takes_back_the_last_turn_that_changed_something(tmp_path: Path) -> None:
    kept, made, changed = (tmp_path / name for name in ("kept", "made", "changed"))
    undo = Undo()
    for path, before in ((kept, b"old"), (made, None), (changed, b"old")):
        undo.note(str(path), before, b"new")
        path.write_bytes(b"new")
    undo.note(str(kept), b"new", b"newer")
    kept.write_bytes(b"newer")
    changed.write_bytes(b"the user's")
    undo.begin_turn()
    assert undo.restore_last() == [
        f"left {changed}: it has been changed since",
        f"restored {kept}",
        f"removed {made}",
    ]
    assert (kept.read_bytes(), made.exists(), changed.read_bytes()) == (b"old", False, b"the user's")
    assert undo.restore_last() == []


def test_undo_forgets_the_oldest_turns_when_it_holds_too_much(tmp_path: Path) -> None:
    undo = Undo()
    for name in ("first", "second"):
        undo.begin_turn()
        undo.note(str(tmp_path / name), None, b"x" * (KEPT_BYTES // 2 + 1))
    assert undo.restore_last() == [f"left {tmp_path}/second: it has been changed since"]
    assert undo.restore_last() == []
