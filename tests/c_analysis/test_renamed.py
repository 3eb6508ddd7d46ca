"""Renamed symbols of objects, checked by GNU nm and the linker."""

import contextlib
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from mlfbuild.c_analysis.objects import object_symbols
from mlfbuild.c_analysis.renamed import renamed_object
from mlfbuild.core.errors import InputFileError
from support.errors import raises

Tool = Callable[[str], str]

SOURCE = """
extern int needed(int);
static int own(int x) { return x + 1; }
int first(int x) { return needed(own(x)); }
__attribute__((weak)) int second(int x) { return first(x) * 2; }
int value = 3;
"""
NAMES = {"needed": "needed_of_module", "first": "f", "own": "never", "absent": "never", "value": "a_much_longer_name"}


def compiled(folder: Path, compiler: str, source: str = SOURCE, *flags: str) -> bytes:
    (folder / "source.c").write_text(source)
    command = [compiler, "-c", *flags, str(folder / "source.c"), "-o", str(folder / "source.o")]
    subprocess.run(command, check=True)
    return (folder / "source.o").read_bytes()


def listed(data: bytes, folder: Path, nm: str) -> set[str]:
    (folder / "listed.o").write_bytes(data)
    text = subprocess.run([nm, str(folder / "listed.o")], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"(\w \w+)$", text, re.MULTILINE))


@pytest.mark.parametrize(("compiler", "nm"), [("gcc", "nm"), ("arm-none-eabi-gcc", "arm-none-eabi-nm")])
def test_nm_finds_the_new_names(tmp_path: Path, tool: Tool, compiler: str, nm: str) -> None:
    was = compiled(tmp_path, tool(compiler))
    now = renamed_object(was, NAMES, "source.o")
    before, after = listed(was, tmp_path, tool(nm)), listed(now, tmp_path, tool(nm))
    assert {"U needed", "T first", "D value", "W second", "t own"} <= before
    changed = {"U needed": "U needed_of_module", "T first": "T f", "D value": "D a_much_longer_name"}
    assert after == {changed.get(symbol, symbol) for symbol in before}
    assert now[: len(was)].count(b"first") == was.count(b"first")  # nothing moved


def test_the_renamed_object_links(tmp_path: Path, tool: Tool) -> None:
    """Two copies of an object link into one program, each with a separate function that it calls."""
    gcc = tool("gcc")
    data = compiled(tmp_path, gcc)
    for name in ("one", "two"):
        names = {symbol: f"{symbol}_{name}" for symbol in ("first", "second", "value", "needed")}
        (tmp_path / f"{name}.o").write_bytes(renamed_object(data, names, "source.o"))
    (tmp_path / "main.c").write_text("""
extern int first_one(int), second_two(int), value_one, value_two;
int needed_one(int x) { return 10 * x; }
int needed_two(int x) { return 100 * x; }
int main(void) { return first_one(1) == 20 && second_two(1) == 400 && value_one + value_two == 6 ? 0 : 1; }
""")
    program = tmp_path / "program"
    files = [str(tmp_path / name) for name in ("main.c", "one.o", "two.o")]
    subprocess.run([gcc, *files, "-o", str(program)], check=True)
    assert subprocess.run([program], check=False).returncode == 0


def test_renaming_twice(tmp_path: Path, tool: Tool) -> None:
    once = renamed_object(compiled(tmp_path, tool("gcc")), {"first": "middle"}, "source.o")
    twice = object_symbols(renamed_object(once, {"middle": "last"}, "source.o"), "source.o")
    assert "last" in twice.defined
    assert not {"first", "middle"} & twice.defined


def test_objects_of_link_time_optimisation(tmp_path: Path, tool: Tool) -> None:
    data = compiled(tmp_path, tool("gcc"), SOURCE, "-flto", "-fno-fat-lto-objects")
    with raises(InputFileError, "object-left-to-lto", at="lib.o"):
        renamed_object(data, {"first": "f"}, "lib.o")
    assert renamed_object(data, {"absent": "f"}, "lib.o")[:4] == b"\x7fELF"


def test_other_files_are_refused() -> None:
    with raises(InputFileError, "object-not-elf", at="lib.o"):
        renamed_object(b"MZ", {}, "lib.o")


@given(st.data())
def test_damaged_objects_are_refused_or_renamed(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.getbasetemp()
    sound = folder / "sound.o"
    if not sound.exists():
        sound.write_bytes(compiled(folder, "gcc"))
    damaged = bytearray(sound.read_bytes())
    for _ in range(data.draw(st.integers(1, 8))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(InputFileError):
        renamed_object(bytes(damaged), NAMES, "lib.o")
