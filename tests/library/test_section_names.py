"""Which sections GCC keeps out of the image."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.library.keys.placement import SectionContent, section_problem


@pytest.mark.parametrize(
    "section", [".persistent", ".persistent.x", ".fast", ".rodata.x", ".bss.x", ".noinit", ".persistent.bss"]
)
def test_constants_are_refused_exactly_if_gcc_has_no_content_for_them(
    section: str, tool: Callable[[str], str], tmp_path: Path
) -> None:
    source, made = tmp_path / "x.c", tmp_path / "x.o"
    source.write_text(f'__attribute__((section("{section}"))) int x;\n')
    subprocess.run([tool("arm-none-eabi-gcc"), "-c", "-o", made, source], check=True)
    headers = subprocess.run(
        [tool("arm-none-eabi-readelf"), "-SW", made], check=True, text=True, capture_output=True
    ).stdout
    found = re.search(rf"{re.escape(section)} +(NOBITS|PROGBITS)", headers)
    assert found is not None
    assert (section_problem(section, SectionContent.CONSTANTS) is None) == (found[1] == "PROGBITS")
