"""Which files some letters find, and in which order."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from ra.cli.project_files import ProjectFiles, scorer


def project(folder: Path, *files: str) -> Path:
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")
    return folder


def test_names_come_before_folders_and_letters_in_order_come_last(tmp_path: Path) -> None:
    names = ("parser/x.py", "a/parser.py", "a/my_parser.py", "p/a/r/s/er.py", "pad_reset.py", "q.py")
    files = ProjectFiles(root=project(tmp_path, *names), cwd=tmp_path)
    assert files.matching("pars") == [
        *("a/parser.py", "a/my_parser.py", "parser/x.py"),
        *("pad_reset.py", "p/a/r/s/er.py"),
    ]
    assert files.matching("PARSER.PY")[0] == "a/parser.py"
    assert files.matching("pdrst") == ["pad_reset.py"]


def test_from_a_subfolder_the_whole_project_is_found_and_what_git_ignores_is_not(tmp_path: Path) -> None:
    project(tmp_path, "web/a.py", "src/app.py", "build/app.py")
    (tmp_path / ".gitignore").write_text("build\n")
    files = ProjectFiles(root=tmp_path, cwd=tmp_path / "web")
    assert files.matching("a.py") == ["a.py", "../src/app.py"]
    assert files.matching("app") == ["../src/app.py"]


def test_a_list_is_read_anew_when_it_is_old(tmp_path: Path) -> None:
    now = [0.0]
    files = ProjectFiles(root=project(tmp_path, "one.py"), cwd=tmp_path, clock=lambda: now[0])
    assert files.matching("py") == ["one.py"]
    project(tmp_path, "two.py")
    assert files.matching("py") == ["one.py"]
    now[0] = 6.0
    assert files.matching("py") == ["one.py", "two.py"]


@given(st.text(alphabet="aA./é中", max_size=6), st.text(alphabet="aA./é中b", min_size=1, max_size=12))
def test_a_path_is_found_exactly_when_it_holds_the_letters_in_order(letters: str, path: str) -> None:
    rest = iter(path.lower())
    assert (scorer(letters)(path) is not None) == all(letter in rest for letter in letters.lower())
