"""The simulation of in-order issue: loops, lists, and instructions that are rare in networks."""

from fractions import Fraction
from pathlib import Path

import pytest

from mlfbuild.timing import CoreTiming, WorkKind
from mlfbuild.timing.cores.issue import delays
from mlfbuild.timing.cores.m7 import CORTEX_M7
from mlfbuild.timing.cores.m33 import CORTEX_M33
from mlfbuild.timing.cores.m55 import CORTEX_M55
from support.thumb import block, cycles, distance, iteration

CORES = [CORTEX_M7, CORTEX_M33, CORTEX_M55]
RARE = """adc r0, r1, r2
sbcs r0, r1, #1
adr r0, behind
umaal r0, r1, r2, r3
smlawb r0, r1, r2, r3
smmlar r0, r1, r2, r3
smlaldx r0, r1, r2, r3
udiv r0, r1, r2
usada8 r0, r1, r2, r3
uqadd8 r0, r1, r2
qdadd r0, r1, r2
pkhtb r0, r1, r2, asr #16
sel r0, r1, r2
rrx r0, r1
clz r0, r1
ldrex r0, [r1]
strexb r0, r1, [r2]
ldr r0, [pc, #16]
ldr r0, [r1, r2, lsl #2]
ldrsh r0, [r1, #-2]!
strd r0, r1, [r2, #8]!
pop {r4, r5, r6}
mrs r0, CONTROL
dsb sy
vmov r0, r1, d0
vmov s0, s1, r0, r1
vmov.f32 s0, #1.0
vmov.f32 s0, s1
vcmp.f32 s0, s1
vmrs APSR_nzcv, fpscr
vcvt.s32.f32 s0, s1
vsqrt.f32 s0, s1
vnmls.f32 s0, s1, s2
vfnma.f32 s0, s1, s2
vabs.f32 s0, s1
vldr d0, [r0]
vpush {d8, d9}
vpop {s16, s17}
vstmia r0!, {s0, s1, s2}"""
DOUBLES = """vadd.f64 d0, d1, d2
vmul.f64 d0, d1, d2
vfma.f64 d0, d1, d2
vdiv.f64 d0, d1, d2
vcvt.f64.f32 d0, s0
vselgt.f64 d0, d1, d2
vrintz.f64 d0, d1"""
VECTORS = """vpst
vctp.8 r0
vpt.s8 ge, q0, q1
vcmp.i32 eq, q0, q1
vmrs r0, p0
vdup.8 q0, r0
vmov.32 r0, q0[1]
vmov q0[2], q0[0], r0, r1
vmov.i32 q0, #0
vddup.u8 q0, r0, #1
vld40.8 {q0, q1, q2, q3}, [r0]
vst20.16 {q0, q1}, [r0]!
vstrb.8 q0, [r1, q2]
vldrh.s32 q0, [r0, q1, uxtw #1]
vaddlv.s32 r0, r1, q0
vmlaldava.s16 r0, r1, q0, q1
vrmlaldavha.s32 r0, r1, q0, q1
vmaxv.s32 r0, q0
vminnmv.f32 r0, q0
vfma.f32 q0, q1, r0
vcadd.i8 q0, q1, q2, #90
vshrnb.i32 q0, q1, #8
vqrshrnt.s32 q0, q1, #8
vbrsr.8 q0, q1, r0
vrev64.8 q0, q1
vshlc q0, r0, #8
lctp
sqrshrl r0, r1, #64, r2
csel r0, r1, r2, eq
dlstp.8 lr, r0
wls lr, r0, behind"""


@pytest.mark.parametrize("core", CORES, ids=lambda core: core.core)
@pytest.mark.parametrize("line", [*RARE.splitlines(), *DOUBLES.splitlines()])
def test_every_instruction_has_a_cost(core: CoreTiming, line: str) -> None:
    first, second = core.costs(block(f"{line}\nadd r0, r0, #1"), False)
    assert first.cycles >= 1 and second.cycles >= 0
    moves = line.split(maxsplit=1)[0].startswith(("ld", "st", "pop", "vld", "vst", "vp"))
    assert (first.kind is WorkKind.MEMORY) == moves


@pytest.mark.parametrize("line", VECTORS.splitlines())
def test_every_vector_instruction_has_a_cost(line: str) -> None:
    assert all(count >= 1 for count in cycles(CORTEX_M55, f"{line}\nvadd.i32 q0, q0, q1"))


def test_tables_of_delays_have_a_number_for_each_pair() -> None:
    found = delays("any stored\n alu 1 0\n load 2 1")
    assert found == {("alu", "any"): 1, ("alu", "stored"): 0, ("load", "any"): 2, ("load", "stored"): 1}
    with pytest.raises(ValueError, match="zip"):
        delays("any stored\n alu 1")


def test_loops_with_an_odd_number_of_pairs_repeat_after_two_iterations() -> None:
    assert iteration(CORTEX_M7, "adds.n r0, #1\nadds.n r1, #1\nbne.n loop") == Fraction(3, 2)
    assert iteration(CORTEX_M7, "adds r0, #1\nadds r1, #1\nbne loop") == 2


def test_results_of_a_loop_are_late_for_its_next_iteration() -> None:
    text = "ldr r1, [r0]\nadd r2, r2, #1\nldr r0, [r1]\nb loop"
    assert iteration(CORTEX_M33, text) == sum(cycles(CORTEX_M33, text)) + 1 == 5


@pytest.mark.parametrize(
    ("core", "first", "last"),
    [(CORTEX_M7, 2, 3), (CORTEX_M33, 4, 5), (CORTEX_M55, 2, 3)],
    ids=lambda value: getattr(value, "core", None),
)
def test_the_first_registers_of_a_list_are_ready_first(core: CoreTiming, first: int, last: int) -> None:
    load = "ldmia r0!, {r1, r2, r3, r4}"
    distances = [distance(core, load, f"ldr r5, [{register}]") for register in ("r1", "r4")]
    assert distances[0] < distances[1]
    assert distances == [first, last]


@pytest.mark.parametrize("core", CORES, ids=lambda core: core.core)
def test_the_page_states_the_errors_of_the_cores(core: CoreTiming) -> None:
    page = (Path(__file__).parents[2] / "docs/latency.md").read_text(encoding="utf-8")
    assert f"| {core.core.replace('cortex-m', 'Cortex-M')} | ±{core.error} % |" in page
