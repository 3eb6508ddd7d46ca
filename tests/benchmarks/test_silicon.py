"""The committed comparison of modelled cycles with silicon, and the script that made it."""

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import silicon
from counting import vendor_images
from counting.firmware import BOARD_SUPPORT, COMPILER, MeasurementError
from counting.images import Result, model_image
from counting.points import LAYERS, NETWORKS, POINTS, Point
from counting.report import PAGES
from silicon import COMMITTED, MEAN, MOST, Bound, Results

from mlfbuild.targets import BOARDS, CPUS
from mlfbuild.timing import CORE_TIMINGS, modelled_error

KWS = NETWORKS[0]
FIRMWARE = r"""
#include "mlf_board.h"
static volatile int sum;
__attribute__((noinline)) int {name}(int times) {{ for (int i = 0; i < times; i++) sum += i; return sum; }}
int main(void) {{ return {name}(100) != 4950; }}
"""


@pytest.fixture(scope="module")
def committed() -> Results:
    return silicon.load()


def test_every_point_is_committed_and_written_in_one_way(committed: Results, tmp_path: Path) -> None:
    assert list(committed) == [point.name for point in POINTS]
    silicon.save(committed, tmp_path / "silicon.json")
    assert (tmp_path / "silicon.json").read_bytes() == COMMITTED.read_bytes()


def test_the_page_has_the_committed_figures(committed: Results) -> None:
    text = "".join(page.read_text() for page in PAGES)
    for name, block in silicon.blocks(committed).items():
        assert f"<!-- counts: {name} -->\n{block}<!-- end -->" in text


def test_the_model_meets_its_limits(committed: Results) -> None:
    assert list(silicon.exceeded(committed)) == []
    assert silicon.mean_error(committed, NETWORKS) <= MEAN
    assert max(abs(silicon.error(committed[point.name], point)) for point in NETWORKS) <= MOST


def with_error(committed: Results, point: Point, percent: float) -> Results:
    cycles = round(point.measured * (1 + percent / 100))
    result = Result(1, arithmetic=cycles, memory=0, branches=0, waiting=0)
    return {**committed, point.name: result}


def test_exceeded_limits_are_reported(committed: Results) -> None:
    limit, core, stated_for_part = silicon.exceeded(with_error(committed, KWS, MOST + 0.5))
    assert limit == f"{KWS.name}: the error is +15.5 %, limit {MOST:g} %"
    assert core == "cortex-m4: the evidence says 16 %, stated: 15 %"
    assert stated_for_part == f"{KWS.name}: the error is +15.5 %, stated for the part: {modelled_error(KWS.mcu)} %"
    (mean, *_) = silicon.exceeded(with_error(committed, KWS, -100))
    assert mean.startswith("the mean error is ") and mean.endswith(f" %, limit {MEAN:g} %")
    stated = modelled_error(LAYERS[0].mcu)
    (core, line) = silicon.exceeded(with_error(committed, LAYERS[0], -stated - 1))
    assert core.startswith("cortex-m55: the evidence says ")
    assert line.startswith(LAYERS[0].name) and f"stated for the part: {stated} %" in line


def test_the_stated_errors_are_those_of_the_evidence(committed: Results) -> None:
    found = silicon.bounds(committed)
    assert {core: bound.error for core, bound in found.items()} == {
        core: timing.error for core, timing in CORE_TIMINGS.items() if core not in {"cortex-m3", "cortex-m85"}
    }
    # Errors of -1, 0 and 1 %: Student's 4.303 for two degrees of freedom, times sqrt(4 / 3), is 4.97.
    u385 = [point for point in POINTS if point.part == "stm32u385"][:3]
    three = {
        point.name: Result(1, round(point.measured * (1 + percent / 100)), 0, 0, 0)
        for point, percent in zip(u385, (-1, 0, 1), strict=True)
    }
    assert silicon.bounds(three) == {"cortex-m33": Bound(3, pytest.approx(1.0, abs=0.01), 5)}


def test_an_image_in_hex_has_its_bytes_from_the_first_address_on() -> None:
    lines = b":020000040800F2\n:020000000102FB\n:020004000304F3\n:0400000508000000EF\n:00000001FF\n"
    assert silicon.from_hex(lines) == bytes([1, 2, 0xFF, 0xFF, 3, 4])


def test_marks_enclose_the_inference() -> None:
    """The first stamp ends before the inference, the second one begins with its last block."""
    seen = [
        ("", 1),
        ("start", 0),
        ("start", 0),
        ("", 2),
        ("lap", 0),
        ("", 3),
        ("", 4),
        ("lap", 0),
        ("", 5),
        ("done", 0),
    ]
    assert vendor_images.between(seen) == (3, 4)
    assert vendor_images.between([each for each in seen if each[0] != "lap"]) == (2, 5)


def test_data_are_in_the_named_memory() -> None:
    assert list(KWS.mcu.memories)[:2] == ["flash", "sram"]
    assert list(LAYERS[0].mcu.memories)[:2] == ["flash", "sram"]
    assert list(replace(LAYERS[0], data="").mcu.memories)[1] == "dtcm"


def image(folder: Path, name: str) -> Path:
    source, elf = folder / f"{name}.c", folder / f"{name}.elf"
    source.write_text(FIRMWARE.format(name=name))
    board = BOARDS["mps2-an386"]
    subprocess.run(
        [
            COMPILER, *CPUS["cortex-m4"].flags, "-O1", "-fno-ipa-cp", "--specs=nano.specs", "-I", BOARD_SUPPORT, source,
            *sorted(BOARD_SUPPORT.glob("*.c")), "-nostartfiles", "-L", BOARD_SUPPORT,
            "-T", BOARD_SUPPORT / f"{board.name}.ld", "-o", elf,
        ],
        check=True,
    )  # fmt: skip
    return elf


def test_an_image_is_modelled(tmp_path: Path, tool: Callable[..., str]) -> None:
    tool("arm-none-eabi-gcc", "qemu-system-arm", "gcc")
    found = model_image(image(tmp_path, "infer"), KWS.mcu, tmp_path)
    assert found.instructions > 500  # a hundred iterations of LDR, ADD, STR, ADD or CMP, and BNE
    assert found.memory >= 300  # LDR 2, STR 1
    assert found.branches >= 198
    assert found.instructions < found.cycles < 3 * found.instructions
    with pytest.raises(MeasurementError, match="no function infer"):
        model_image(image(tmp_path, "other"), KWS.mcu, tmp_path)
