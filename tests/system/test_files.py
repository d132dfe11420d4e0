"""The one opener and the one writer: links, pipes, folders, modes, crashes."""

import os
import socket
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ra.system.files import (
    IMAGE_TYPES,
    NotRegular,
    append_private,
    create_private,
    media_type,
    open_lock,
    open_regular,
    open_resolved,
    open_without_links,
    replace_file,
    similar_names,
    write_private,
)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.fixture
def link(tmp_path: Path) -> Path:
    (tmp_path / "target").write_bytes(b"secret")
    (tmp_path / "link").symlink_to("target")
    return tmp_path / "link"


def test_a_link_is_not_followed_unless_it_was_resolved(link: Path) -> None:
    with pytest.raises(OSError, match="symbolic links"):
        open_regular(link)
    with open_resolved(link) as file:
        assert file.read() == b"secret"


def test_a_link_in_a_folder_on_the_way_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/file").write_bytes(b"text")
    (tmp_path / "way").symlink_to("real")
    with open_regular(tmp_path / "way/file") as file:
        assert file.read() == b"text"
    with pytest.raises(OSError, match=r"way|Not a directory|symbolic"):
        open_without_links(str(tmp_path / "way/file"))


def test_what_is_no_file_is_named_and_never_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    kinds = {}
    for path in (tmp_path / "fifo", tmp_path / "folder", Path("/dev/null")):
        with pytest.raises(NotRegular) as refused:
            open_regular(path)
        kinds[path.name] = refused.value.kind
    assert kinds == {"fifo": "a named pipe", "folder": "a folder", "null": "a device"}


def test_a_socket_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s")
        with pytest.raises(OSError, match="No such device"):
            open_regular("s")


@pytest.mark.parametrize("write", [create_private, append_private, lambda path, _data: os.close(open_lock(path))])
def test_no_writer_follows_a_link(link: Path, write) -> None:
    with pytest.raises(OSError, match=r"symbolic links|File exists"):
        write(link, b"overwritten")
    assert link.read_bytes() == b"secret"


def test_a_private_file_takes_the_place_of_a_link(link: Path) -> None:
    write_private(link, b"ours")
    assert not link.is_symlink()
    assert (link.with_name("target").read_bytes(), link.read_bytes(), mode_of(link)) == (b"secret", b"ours", 0o600)


def test_private_files_and_their_new_folders_are_for_the_user_alone(tmp_path: Path) -> None:
    mask = os.umask(0)
    try:
        write_private(tmp_path / "new/inner/file", b"1")
        append_private(tmp_path / "log", b"2")
        create_private(tmp_path / "token", b"3")
        os.close(open_lock(tmp_path / "lock"))
    finally:
        os.umask(mask)
    assert {mode_of(tmp_path / name) for name in ("new/inner/file", "log", "token", "lock")} == {0o600}
    assert mode_of(tmp_path / "new/inner") == 0o700


def test_of_two_that_create_a_file_the_first_counts(tmp_path: Path) -> None:
    create_private(tmp_path / "token", b"first")
    with pytest.raises(FileExistsError):
        create_private(tmp_path / "token", b"second")
    assert (tmp_path / "token").read_bytes() == b"first"


def test_a_users_file_keeps_its_mode(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_bytes(b"old")
    script.chmod(0o751)
    replace_file(str(script), b"new")
    assert (script.read_bytes(), mode_of(script)) == (b"new", 0o751)
    replace_file(str(tmp_path / "a/b/new.txt"), b"text")
    assert (tmp_path / "a/b/new.txt").read_bytes() == b"text"


def test_a_write_that_fails_leaves_the_old_file_and_no_draft(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "target/inner").touch()
    with pytest.raises(OSError, match=r"directory|folder"):
        write_private(tmp_path / "target", b"data")  # a file cannot take a folder's place
    assert sorted(path.name for path in tmp_path.iterdir()) == ["target"]


@given(old=st.binary(max_size=100), new=st.binary(max_size=100))
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, old: bytes, new: bytes) -> None:
    path = tmp_path_factory.mktemp("files") / "file"
    for data in (old, new):
        write_private(path, data)
        with open_regular(path) as file:
            assert file.read() == data
    assert [entry.name for entry in path.parent.iterdir()] == ["file"]


def test_media_types_by_content() -> None:
    heads = {
        b"\x89PNG\r\n\x1a\n....": "image/png",
        b"\xff\xd8\xff\xe0": "image/jpeg",
        b"GIF87a": "image/gif",
        b"GIF89a": "image/gif",
        b"RIFF\0\0\0\0WEBPVP8 ": "image/webp",
        b"RIFF\0\0\0\0WAVEfmt ": "",
        b"GIF is a format": "",
        b"%PDF-1.7": "application/pdf",
        b"": "",
    }
    assert {head: media_type(head) for head in heads} == heads
    assert set(IMAGE_TYPES) < {*heads.values()}


def test_similar_names_of_a_folder_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    assert similar_names(str(tmp_path), "note.txt") == ["notes.txt"]
    assert similar_names(str(tmp_path / "no"), "note.txt") == []
    assert similar_names(str(tmp_path), "n" * 300) == []
    assert similar_names(str(tmp_path), "a\0b") == []
