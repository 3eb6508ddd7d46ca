"""The figures with CMSIS-NN's kernels: those of the page are the committed ones, and the library still has them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from counting.firmware import build_library, compiler_version
from counting.measure import Case, measure
from counting.report import PAGES, cmsis_nn
from counting.results import CMSIS_NN, CMSIS_NN_CASES, grown, load


def test_the_page_has_the_committed_figures() -> None:
    committed = load(CMSIS_NN)
    assert tuple(committed.results) == CMSIS_NN_CASES
    assert (
        f"<!-- counts: cmsis_nn -->\n{cmsis_nn(load().results, committed.results)}<!-- end -->" in PAGES[0].read_text()
    )


@pytest.mark.usefixtures("shared")
def test_the_library_takes_what_is_committed(cmsis_nn_7: Path, tmp_path: Path, tool: Callable[[str], str]) -> None:
    for name in ("arm-none-eabi-gcc", "qemu-system-arm"):
        tool(name)
    committed, case = load(CMSIS_NN), Case("ad", "cortex-m55")
    if committed.compiler != compiler_version():
        pytest.skip(f"the committed figures are of GCC {committed.compiler}")
    sources = sorted((cmsis_nn_7 / "Source/FullyConnectedFunctions").glob("*.c"))
    sources += sorted((cmsis_nn_7 / "Source/NNSupportFunctions").glob("*.c"))
    library = build_library(cmsis_nn_7 / "Include", sources, case.cpu, tmp_path / "library")
    result = measure(case, tmp_path / "network", cmsis_nn=library)
    assert list(grown(case, committed.results[case], result)) == []
    assert result.instructions > load().results[case].instructions
