"""`mlfbuild clashes`, which other build systems run before they link models into one image."""

import subprocess
from collections.abc import Callable

import pytest

from support.command import Folder


@pytest.fixture
def objects(folder: Folder, tool: Callable[[str], str]) -> Folder:
    """Return a folder with objects of three models: ``a.o`` and ``b.o`` share the symbol ``helper``."""
    for name, text in (("a", "int helper;"), ("b", "int helper;"), ("c", "static int helper; int *c = &helper;")):
        folder.write(f"{name}.c", text)
        subprocess.run([tool("gcc"), "-c", f"{name}.c"], cwd=folder.root, check=True)
    return folder


def test_no_shared_symbols(objects: Folder) -> None:
    ended = objects.run("clashes", "a.o", "c.o", "--stamp", "s/checked", "-v")
    assert (ended.status, ended.out, ended.err) == (
        0,
        "image: no model shares a global symbol with another (a, c)\n",
        "",
    )
    assert (objects.root / "s/checked").read_bytes() == b""
    assert objects.run("clashes", "a.o", "c.o").out == ""
    assert objects.run("clashes", "x=a.o", "c.o", "--format", "json").json == {"image": "image", "models": ["x", "c"]}


def test_shared_symbol_of_two_models(objects: Folder) -> None:
    objects.write("list", "kws (module k)=a.o\nc=c.o\n")
    arguments = ("clashes", "b.o", "--list", "list", "--image", "app.elf", "--stamp", "checked")
    assert objects.refused(*arguments) == (1, "symbols-in-conflict", "app.elf")
    assert not (objects.root / "checked").exists()


def test_shared_symbol_of_model_and_firmware(objects: Folder) -> None:
    arguments = ("clashes", "kws=a.o", "=b.o", "--image", "app.elf")
    assert objects.refused(*arguments) == (1, "symbols-in-conflict", "app.elf")
    assert objects.run("clashes", "kws=a.o", "=c.o", "-v").out == (
        "image: no model shares a global symbol with another (kws)\n"
    )


@pytest.mark.parametrize(
    ("arguments", "refused"),
    [
        ("", (2, "libraries-missing", "")),
        ("a=a.o b=gone.a", (5, "no-such-input", "gone.a")),
        ("--list gone", (5, "no-such-input", "gone")),
    ],
)
def test_mistakes(objects: Folder, arguments: str, refused: tuple[int, str, str]) -> None:
    assert objects.refused("clashes", *arguments.split()) == refused


def test_other_files_are_ignored(objects: Folder) -> None:
    ended = objects.run("clashes", "a=a.o", "c=a.c")
    assert (ended.status, ended.err) == (0, "")
