"""``mlfbuild flash``: an image is written to the device of its target."""

import json
from pathlib import Path

import pytest

from support import warm


def test_an_image_is_built_and_written_to_the_device(desk: Path) -> None:
    done = warm.run("mlfbuild", "flash", "nucleo", "--target", "nucleo", "--format", "json", cwd=desk, status=0)
    result = json.loads(done.stdout)
    assert (result["target"], result["elf"]) == ("nucleo", "build/nucleo/nucleo/nucleo.elf")
    assert result["device"].startswith("gdb localhost:")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--elf", "none.elf"), "target-not-chosen"),
        (("--elf", "none.elf", "--target", "bare"), "target-without-runner"),
        (("nuclea",), "firmware-not-chosen"),
    ],
)
def test_mistakes(desk: Path, words: tuple[str, ...], code: str) -> None:
    done = warm.run("mlfbuild", "flash", *words, "--format", "json", cwd=desk)
    assert (done.returncode, json.loads(done.stderr.splitlines()[-1])["code"]) == (2, code)
