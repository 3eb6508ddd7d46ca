import os
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from mlfbuild.archive.tar import plain_path
from mlfbuild.requirements.folder import base_folder, matches


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("a.c", {"a.c"}),
        ("*.c", {"a.c"}),
        ("src/*.c", {"src/a.c", "src/b.c"}),
        ("src/**/*.c", {"src/a.c", "src/b.c", "src/x/c.c", "src/x/y/d.c"}),
        ("**/*.c", {"a.c", "src/a.c", "src/b.c", "src/x/c.c", "src/x/y/d.c"}),
        ("src/**", {"src/a.c", "src/b.c", "src/b.h", "src/x/c.c", "src/x/y/d.c"}),
        ("src/*/c.c", {"src/x/c.c"}),
        ("src/**/y/*", {"src/x/y/d.c"}),
        ("./src//[a-b].?", {"src/a.c", "src/b.c", "src/b.h"}),
        ("src/[!a].c", {"src/b.c"}),
        ("SRC/*.c", set()),
        ("src", set()),
        ("src/a.c/*", set()),
    ],
)
def test_patterns(pattern: str, found: set[str]) -> None:
    paths = ["a.c", "src/a.c", "src/b.c", "src/b.h", "src/x/c.c", "src/x/y/d.c"]
    assert {path for path in paths if matches(pattern, path)} == found


@pytest.mark.parametrize(
    ("pattern", "folder"),
    [("a.c", ""), ("src/a.c", "src"), ("./src/x/*.c", "src/x"), ("src/*/y/a.c", "src"), ("**", ""), ("a/[x]/b", "a")],
)
def test_base_folders(pattern: str, folder: str) -> None:
    assert base_folder(pattern) == folder


NAMES = st.sampled_from(["a", "b", "ab", "a.c"])


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which every path of at most three names is a folder or a file."""
    root = tmp_path_factory.mktemp("tree")
    for first in ("a", "b", "ab"):
        for second in ("a", "b", "ab"):
            (root / first / second).mkdir(parents=True)
            (root / first / second / "a.c").touch()
        (root / first / "a.c").touch()
    (root / "a.c").touch()
    return root


@settings(max_examples=200, deadline=None)
@given(pattern=st.lists(NAMES | st.sampled_from(["*", "a*", "?", "**", "[ab]", "."]), min_size=1, max_size=4))
def test_patterns_agree_with_pathlib(tree: Path, pattern: list[str]) -> None:
    text = "/".join(pattern)
    files = {path.relative_to(tree).as_posix() for path in tree.rglob("*") if path.is_file()}
    ours = {path for path in files if matches(text, path)}
    assert all(path.startswith(base_folder(text)) for path in ours)
    if pattern[-1] in {"**", "."} or not plain_path(text):
        return  # pathlib matches folders with these
    theirs = {os.path.relpath(path, tree) for path in tree.glob(plain_path(text)) if path.is_file()}
    assert ours == theirs
