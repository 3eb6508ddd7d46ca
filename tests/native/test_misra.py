"""Findings of MISRA C:2012 in generated C, as Cppcheck counts them, against the committed ones and their reasons."""

import re
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import mlfbuild
from mlfbuild.native.printing.header import MISRA_DEVIATIONS
from support.host_c import write_tree

ROOT = Path(__file__).parents[2]
_REASON = re.compile(r"^\| ([0-9]+\.[0-9]+) \|", re.MULTILINE)
_FINDING = re.compile(r"^(.*):misra-c2012-([0-9.]+)$", re.MULTILINE)


def findings(model: str, cpu: str, folder: Path, tool: Callable[[str], str]) -> Counter[tuple[str, str]]:
    """Return how often each (rule, file) is found; the assembly of kernels, which is not C, is left out."""
    library = mlfbuild.compile(str(ROOT / model), cpu=cpu).library
    write_tree(library, folder)
    source = next(folder.rglob("*_lib0.c"))
    done = subprocess.run(
        [tool("cppcheck"), "--addon=misra", "--std=c99", "--platform=arm32-wchar_t4", "-q", "-D__arm__",
         "--template={file}:{line}:{id}", "-I", folder / "host/include", source],
        stderr=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    places = set(_FINDING.findall(done.stderr))  # a header's finding is printed once per inclusion
    return Counter((rule, Path(place.rsplit(":", 1)[0]).name) for place, rule in places)


def test_header_and_documentation_list_the_same_deviations() -> None:
    reasons = _REASON.findall((ROOT / "docs/c-interface.md").read_text())
    assert sorted(reasons) == sorted(MISRA_DEVIATIONS)


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("model", "cpu"),
    [("examples/digits/models/digits.tflite", "cortex-m4"), ("examples/keyword/models/words.tflite", "cortex-m0plus")],
)
def test_findings_are_the_committed_ones(
    model: str, cpu: str, tmp_path: Path, tool: Callable[[str], str], golden: Callable[[str, str], None]
) -> None:
    found = findings(model, cpu, tmp_path, tool)
    assert sorted({rule for rule, _ in found} - set(MISRA_DEVIATIONS)) == []
    lines = [f"{rule} {file} {count}\n" for (rule, file), count in sorted(found.items())]
    golden("".join(lines), f"{Path(model).stem}-{cpu}.txt")
