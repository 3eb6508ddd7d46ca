"""`mlfbuild clashes`, which other build systems run before they link models into one image."""

from __future__ import annotations

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
    ended = objects.run("clashes", "b.o", "--list", "list", "--image", "app.elf", "--stamp", "checked")
    assert ended.status == 1
    assert ended.err.startswith("mlfbuild: app.elf: models b and kws (module k) both define the global symbol 'helper'")
    assert not (objects.root / "checked").exists()


def test_shared_symbol_of_model_and_firmware(objects: Folder) -> None:
    ended = objects.run("clashes", "kws=a.o", "=b.o", "--image", "app.elf")
    assert ended.status == 1
    assert ended.err == (
        "mlfbuild: app.elf: model kws and the firmware both define the global symbol 'helper' (a.o, b.o); rename it in "
        "the firmware, or make it static\n"
    )
    assert objects.run("clashes", "kws=a.o", "=c.o", "-v").out == (
        "image: no model shares a global symbol with another (kws)\n"
    )


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        ("", 2, "mlfbuild: no static library is given"),
        ("a=a.o b=gone.a", 5, "mlfbuild: gone.a: no such object of a model; check the path\n"),
        ("--list gone", 5, "mlfbuild: gone: no such list of libraries; check the path\n"),
        ("a=a.o c=a.c", 0, ""),
    ],
)
def test_mistakes(objects: Folder, arguments: str, status: int, words: str) -> None:
    ended = objects.run("clashes", *arguments.split())
    assert ended.status == status
    assert ended.err.startswith(words)
    assert ended.err.count("\n") == (1 if words else 0)
