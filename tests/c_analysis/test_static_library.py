"""Static libraries from ar are read, and damaged ones are refused."""

import random
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from mlfbuild.c_analysis.conflicts import members
from mlfbuild.core.errors import InputFileError
from support.errors import raises

LONG = "a_name_that_does_not_fit_into_sixteen_bytes.o"


@pytest.fixture
def made(tmp_path: Path, tool: Callable[[str], str]) -> Callable[..., bytes]:
    """Return a function that packs files, by name, into a library with ar."""

    def make(files: Sequence[tuple[str, bytes]], *options: str) -> bytes:
        for name, content in files:
            (tmp_path / name).write_bytes(content)
        names = [name for name, _ in files]
        subprocess.run([tool("ar"), *options, "qc", "lib.a", *names], cwd=tmp_path, check=True)
        return (tmp_path / "lib.a").read_bytes()

    return make


def test_libraries_of_ar_are_read(made: Callable[..., bytes]) -> None:
    files = [("odd.o", b"odd"), (LONG, b"long"), ("empty.o", b""), ("last.o", b"\n`\n//")]
    assert list(members(made(files), "lib.a")) == files


def test_names_of_the_bsd_format() -> None:
    content = LONG.encode().ljust(48, b"\0") + b"data"
    header = f"{'#1/48':16}{'0':12}{'0':6}{'0':6}{'644':8}{len(content):<10}`\n".encode()
    assert list(members(b"!<arch>\n" + header + content, "lib.a")) == [(LONG, b"data")]


def test_the_index_is_not_an_object(tmp_path: Path, tool: Callable[[str], str]) -> None:
    (tmp_path / "x.c").write_text("int x;\n")
    subprocess.run([tool("gcc"), "-c", "x.c"], cwd=tmp_path, check=True)
    subprocess.run([tool("ar"), "rcs", "lib.a", "x.o"], cwd=tmp_path, check=True)
    ((name, content),) = members((tmp_path / "lib.a").read_bytes(), "lib.a")
    assert (name, content) == ("x.o", (tmp_path / "x.o").read_bytes())


def entry(name: str = "x.o/", size: object = 1, end: str = "`\n") -> bytes:
    return b"!<arch>\n" + f"{name:16}{'0':12}{'0':6}{'0':6}{'644':8}{size:<10}{end}".encode() + b"x"


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "library-not-ar"), (b"\x7fELF", "library-not-ar"), (b"!<thin>\n", "library-thin"),
        (entry(end="??"), "library-damaged"), (entry(size="-1"), "library-damaged"),
        (entry("/", size="-60"), "library-damaged"), (entry("//", size="-60"), "library-damaged"),
        (entry()[:30], "library-damaged"), (entry(size=2), "library-damaged"),
        (entry(size=9999999999), "library-damaged"), (entry("/7"), "library-damaged"),
        (entry("/x"), "library-damaged"), (entry("#1/2"), "library-damaged"), (entry("#1/x"), "library-damaged"),
    ],
)  # fmt: skip
def test_other_files_and_damaged_libraries_are_refused(data: bytes, code: str) -> None:
    with raises(InputFileError, code, at="libx.a"):
        list(members(data, "libx.a"))


def test_damaged_libraries_are_refused_or_read(made: Callable[..., bytes]) -> None:
    sound = made([("odd.o", b"odd"), (LONG, b"long"), ("last.o", b"x" * 40)])
    dice = random.Random(1)
    for _ in range(2000):
        data = bytearray(sound[: dice.randrange(len(sound) + 1)] if dice.random() < 0.3 else sound)
        for _ in range(dice.randrange(4)):
            if data:
                data[dice.randrange(len(data))] = dice.choice(b"\0/#1 9`\n\xff")
        try:
            found = list(members(bytes(data), "lib.a"))
        except InputFileError:
            continue
        assert sum(len(content) for _, content in found) <= len(data)
