"""The description in test firmware, read from valid, damaged and malicious images."""

import random
import struct
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mlfbuild.core.errors import InputFileError
from mlfbuild.jobs.tree.verification import SYMBOL, Subject, module_header, subject_of
from mlfbuild.library import TensorInfo
from mlfbuild.verify.image import read_subject
from support.errors import raises
from support.hand_written_library import write_library
from support.steps import calls

SUBJECT = Subject(
    "net",
    "mps2-an386",
    (TensorInfo('a "quoted" \\ name??/', "int8", 6, (1, 2, 3)),),
    (TensorInfo("b", "float32", 8),),
    64,
    16,
    takes_workspace=True,
    pools=(("sram", 64),),
)


def c_string(text: str) -> str:
    return '"' + "".join(f"\\{byte:03o}" for byte in text.encode()) + '"'


@pytest.fixture(scope="module", params=["gcc", "arm-none-eabi-gcc"])
def compiler(request: pytest.FixtureRequest, tool: Callable[[str], str]) -> str:
    return tool(request.param)


def image(folder: Path, compiler: str, text: str, name: str = SYMBOL) -> Path:
    """Return a program whose constant ``name`` has the value ``text``."""
    source = folder / "image.c"
    source.write_text(f"const char {name}[] = {c_string(text)};\nint main(void) {{ return {name}[0]; }}\n")
    output = folder / "image.elf"
    options = ["-nostdlib", "-Wl,-e,main"]
    subprocess.run([compiler, *options, str(source), "-o", str(output)], check=True)
    return output


def test_description_of_an_image(tmp_path: Path, compiler: str) -> None:
    assert read_subject(image(tmp_path, compiler, SUBJECT.to_json())) == SUBJECT


def test_any_tensor_name_survives_the_c_compiler(tmp_path: Path, tool: Callable[[str], str]) -> None:
    module = write_library(tmp_path)
    odd = replace(module, inputs=(replace(module.inputs[0], name='x??/"\\\n\x1b\u00e9'), module.inputs[1]))
    (tmp_path / "verify_module.h").write_text(module_header(odd, "host"))
    source = tmp_path / "image.c"
    source.write_text(
        f'#include "verify_module.h"\nconst char {SYMBOL}[] = MODULE_SUBJECT;\nint main(void) {{ return 0; }}\n'
    )
    output = tmp_path / "image"
    subprocess.run([tool("gcc"), "-std=c99", "-I", tmp_path, source, "-o", output], check=True)
    assert read_subject(output) == subject_of(odd, "host")


@pytest.mark.parametrize(
    ("changes", "code", "place"),
    [
        ({"board": "toaster"}, "unknown-board-in-image", ""),
        ({"name": "no name"}, "test-firmware-damaged", f": {SYMBOL}"),
        ({"outputs": ()}, "test-firmware-damaged", f": {SYMBOL}"),
        ({"outputs": (TensorInfo("b", "object", 8),)}, "test-firmware-damaged", f": {SYMBOL}: tensor 'b'"),
        ({"outputs": (TensorInfo("b", "float32", 7),)}, "test-firmware-damaged", f": {SYMBOL}: tensor 'b'"),
        ({"outputs": (TensorInfo("b", "int8", 1 << 40),)}, "test-firmware-damaged", f": {SYMBOL}: tensor 'b'"),
        ({"outputs": (TensorInfo("b", "int8", 8, (3, 3)),)}, "test-firmware-damaged", f": {SYMBOL}: tensor 'b'"),
        ({"outputs": (TensorInfo("b", "int8", 8, (1 << 62,) * 9000),)}, "test-firmware-damaged",
         f": {SYMBOL}: tensor 'b'"),
    ],
)  # fmt: skip
def test_invalid_descriptions_are_rejected(
    tmp_path: Path, tool: Callable[[str], str], changes: dict[str, Any], code: str, place: str
) -> None:
    path = image(tmp_path, tool("gcc"), replace(SUBJECT, **changes).to_json())
    with raises(InputFileError, code, f"{path}{place}") as caught:
        read_subject(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("", "json-invalid", ""),
        ("[1]", "json-type-wrong", ""),
        ('{"mlfbuild_verify":2}', "json-value-invalid", ": mlfbuild_verify"),
        ('{"mlfbuild_verify":1}', "json-member-missing", ": module"),
        ("[" * 100000, "json-invalid", ""),
        ("\xff", "json-invalid", ""),
    ],
)
def test_damaged_descriptions_are_rejected(
    tmp_path: Path, tool: Callable[[str], str], text: str, code: str, place: str
) -> None:
    path = image(tmp_path, tool("gcc"), text)
    with raises(InputFileError, code, f"{path}: {SYMBOL}{place}"):
        read_subject(path)


def test_variable_is_not_accepted_as_the_description(tmp_path: Path, tool: Callable[[str], str]) -> None:
    source, output = tmp_path / "image.c", tmp_path / "image"
    source.write_text(f"char {SYMBOL}[8];\nint main(void) {{ return 0; }}\n")
    subprocess.run([tool("gcc"), source, "-o", output], check=True)
    with raises(InputFileError, "image-damaged", str(output)):
        read_subject(output)


def test_other_programs_are_not_test_firmware(tmp_path: Path, compiler: str) -> None:
    path = image(tmp_path, compiler, SUBJECT.to_json(), name="something_else")
    with raises(InputFileError, "not-test-firmware"):
        read_subject(path)


def test_damaged_images_are_rejected_in_one_line(tmp_path: Path, compiler: str) -> None:
    data = image(tmp_path, compiler, SUBJECT.to_json()).read_bytes()
    path = tmp_path / "damaged.elf"
    dice = random.Random(5)
    refused = 0
    for round_ in range(200):
        damaged = bytearray(data)
        if round_ % 4 == 0:
            del damaged[dice.randrange(len(damaged)) :]
        else:  # mostly in the header and the tables at the end
            for _ in range(dice.randrange(1, 6)):
                place = dice.randrange(64) if dice.random() < 0.5 else dice.randrange(len(damaged) - 1000, len(damaged))
                damaged[place] = dice.choice([0, 1, 127, 128, 255, dice.randrange(256)])
        path.write_bytes(damaged)
        message = reason(path)
        refused += message is not None
        assert message is None or ("\n" not in message and message.startswith(str(path)))
    assert refused > 50


def reason(path: Path) -> str | None:
    try:
        read_subject(path)
    except InputFileError as error:
        return str(error)
    return None


def test_large_numbers_in_a_malicious_table_cost_nothing(tmp_path: Path, tool: Callable[[str], str]) -> None:
    data = bytearray(image(tmp_path, tool("arm-none-eabi-gcc"), SUBJECT.to_json()).read_bytes())
    start, entry_size, count = struct.unpack_from("<I10xHH", data, 32)
    for index in range(count):
        struct.pack_into("<I", data, start + index * entry_size + 20, 0xFFFFFFFF)  # sh_size
    path = tmp_path / "hostile.elf"
    path.write_bytes(data)

    def read() -> None:
        with raises(InputFileError, "image-damaged", "hostile.elf"):
            read_subject(path)

    assert calls(read) < 10_000
