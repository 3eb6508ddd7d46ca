"""Read the constants of an image for external flash, and reject files without them."""

import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.core.errors import InputFileError
from mlfbuild.jobs.placement import has_symbol, linked_section, section_names
from support.errors import raises

SOURCE = """\
const unsigned char params[40] __attribute__((section(".mlf_params"))) = {1, 2, 3};
const unsigned char copied[8] __attribute__((section(".copied"))) = {9};
unsigned char workspace[100] __attribute__((section(".bss.ws")));
int main(void) { return params[0] + copied[1] + workspace[2]; }
"""
SCRIPT = """\
SECTIONS
{
  .text 0x08000000 : { *(.text .text.*) *(.ARM.ex*) }
  .copied 0x20000000 : AT(0x08010000) { *(.copied) }
  .bss.ws 0x20001000 (NOLOAD) : { *(.bss.ws) }
  .mlf_params 0x90000000 : AT(0x90000000) { *(.mlf_params) }
}
"""


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory, tool: Callable[[str], str]) -> Path:
    folder = tmp_path_factory.mktemp("image")
    (folder / "main.c").write_text(SOURCE)
    (folder / "app.ld").write_text(SCRIPT)
    compiler = [tool("arm-none-eabi-gcc"), "-mcpu=cortex-m4", "-mthumb", "-Os"]
    subprocess.run([*compiler, "-c", "main.c"], cwd=folder, check=True)
    link = [*compiler, "-nostdlib", "-Wl,-e,main", "-Tapp.ld", "main.o", "-o", "app.elf"]
    subprocess.run(link, cwd=folder, check=True, capture_output=True)
    return folder / "app.elf"


def test_the_bytes_and_their_address(image: Path) -> None:
    found = linked_section(image)
    assert (found.name, found.address, found.data) == (".mlf_params", 0x90000000, b"\1\2\3" + bytes(37))
    assert section_names(image) == [".text", ".copied", ".bss.ws", ".mlf_params"]


def test_objcopy_extracts_the_same_bytes(image: Path, tmp_path: Path, tool: Callable[[str], str]) -> None:
    output = tmp_path / "params.bin"
    objcopy = [tool("arm-none-eabi-objcopy"), "-O", "binary", "--only-section=.mlf_params", str(image), str(output)]
    subprocess.run(objcopy, check=True)
    assert output.read_bytes() == linked_section(image).data


def test_copied_data_has_its_load_address(image: Path) -> None:
    assert linked_section(image, ".copied").address == 0x08010000


def test_symbols(image: Path, tmp_path: Path, tool: Callable[[str], str]) -> None:
    stripped = tmp_path / "stripped.elf"
    subprocess.run([tool("arm-none-eabi-strip"), "-o", str(stripped), str(image)], check=True)
    assert [has_symbol(image, "params"), has_symbol(image, "nowhere"), has_symbol(stripped, "params")] == [
        True, False, None,
    ]  # fmt: skip
    assert linked_section(stripped) == linked_section(image), "sections are enough"


def test_image_of_this_machine(tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text(SOURCE)
    subprocess.run(["gcc", "main.c", "-o", "app"], cwd=tmp_path, check=True)
    assert linked_section(tmp_path / "app").data == b"\1\2\3" + bytes(37)


def without_section_headers(data: bytes) -> bytes:
    """Return the image as ``objcopy --strip-section-headers`` of recent binutils writes it."""
    return data[:32] + struct.pack("<I", 0) + data[36:46] + struct.pack("<HHH", 40, 0, 0) + data[52:]


@pytest.mark.parametrize(
    ("section", "code", "place"),
    [
        (".nowhere", "image-without-section", ""),
        (".symtab", "image-without-section", ""),
        (".bss.ws", "section-without-bytes", ": .bss.ws"),
    ],
)
def test_sections_without_constants_are_rejected(image: Path, section: str, code: str, place: str) -> None:
    with raises(InputFileError, code, at=f"{image}{place}"):
        linked_section(image, section)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda _: b"", "not-an-elf-image"),
        (lambda _: b":020000040800F2\n", "not-an-elf-image"),
        (lambda data: data[:30], "image-damaged"),
        (lambda data: data[:4] + b"\7" + data[5:], "image-damaged"),
        (lambda data: data[: len(data) // 2], "image-damaged"),
        (without_section_headers, "image-without-section"),
    ],
    ids=["empty", "hex", "header cut off", "no class", "half", "no section headers"],
)
def test_damaged_images_are_rejected(image: Path, tmp_path: Path, change: Callable[[bytes], bytes], code: str) -> None:
    path = tmp_path / "app.elf"
    path.write_bytes(change(image.read_bytes()))
    with raises(InputFileError, code, at=str(path)):
        linked_section(path)


def test_object_that_is_not_linked_is_rejected(image: Path) -> None:
    with raises(InputFileError, "image-not-linked", at=str(image.with_name("main.o"))):
        linked_section(image.with_name("main.o"))


def test_a_missing_file(tmp_path: Path) -> None:
    with raises(InputFileError, "no-such-input", "app.elf"):
        linked_section(tmp_path / "app.elf")


def test_every_cut_and_flip_is_rejected_or_harmless(image: Path, tmp_path: Path) -> None:
    data, path = image.read_bytes(), tmp_path / "app.elf"
    starts = [*range(52), *range(len(data) - 40 * 12, len(data), 3)]
    refused = 0
    for at in starts:
        path.write_bytes(data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :])
        try:
            assert len(linked_section(path).data) <= len(data)
        except InputFileError:
            refused += 1
    assert refused > 20
