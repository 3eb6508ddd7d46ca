"""The pipeline of the Cortex-M55: loops whose cycles Arm's book on Helium states, and latencies."""

import pytest

from mlfbuild.timing.cores.m55 import CORTEX_M55 as M55
from support.thumb import block, cycles, distance, iteration

ONE_ROW = """vldrb.s8 q0, [r0], #16
vldrb.s8 q1, [r1], #16
vmladava.s8 r2, q0, q1
le lr, loop"""
TWO_ROWS = """vldrb.s8 q0, [r0], #16
vldrb.s8 q1, [r1], #16
vmladava.s8 r2, q0, q1
vldrb.s8 q2, [r3], #16
vmladava.s8 r4, q0, q2
le lr, loop"""
FOUR_ROWS = """vldrb.s8 q0, [r0], #16
vldrb.s8 q1, [r1], #16
vmladava.s8 r2, q0, q1
vldrb.s8 q2, [r3], #16
vmladava.s8 r4, q0, q2
vldrb.s8 q3, [r5], #16
vmladava.s8 r6, q0, q3
vldrb.s8 q4, [r7], #16
vmladava.s8 r8, q0, q4
le lr, loop"""
COMPLEX = """vldrw.u32 q0, [r1], #16
vldrw.u32 q1, [r0], #16
vcmul.f32 q2, q1, q0, #0
vcmla.f32 q2, q1, q0, #90
vstrw.32 q2, [r2]
le lr, loop"""
COMPLEX_UNROLLED = """vcmul.f32 q2, q0, q1, #0
vldrw.u32 q3, [r1], #16
vcmla.f32 q2, q0, q1, #90
vldrw.u32 q1, [r0], #16
vstrw.32 q2, [r2], #16
vcmul.f32 q2, q3, q1, #0
vldrw.u32 q0, [r1], #16
vcmla.f32 q2, q3, q1, #90
vldrw.u32 q1, [r0], #16
vstrw.32 q2, [r2], #16
le lr, loop"""
SCALARS = """vldr s0, [r1, #4]
vldr s2, [r0, #4]
vmul.f32 s0, s2, s0
vstr s0, [r2, #4]
adds.n r0, #4
adds.n r1, #4
adds.n r2, #4
le lr, loop"""


@pytest.mark.parametrize(
    ("loop", "expected"),
    [
        pytest.param(ONE_ROW, 4, id="9.1: one accumulator"),
        pytest.param(TWO_ROWS, 6, id="9.1: two accumulators"),
        pytest.param(FOUR_ROWS, 10, id="9.1: four accumulators"),
        pytest.param(FOUR_ROWS.replace("vmladava", "vmlava"), 10, id="9.1: as objdump writes it"),
        pytest.param("vmlava.s8 r2, q0, q1\nvadd.i32 q2, q2, q3\nle lr, loop", 2, id="sums beside additions"),
        pytest.param(COMPLEX, 8, id="8.5: complex product"),
        pytest.param(COMPLEX_UNROLLED, 12, id="8.5: complex product, unrolled"),
        pytest.param(SCALARS, 8, id="3.2: product of scalars"),
    ],
)
def test_loops_take_the_cycles_of_arms_book(loop: str, expected: int) -> None:
    assert iteration(M55, loop) == expected


def test_a_loop_has_the_parts_of_its_cycles() -> None:
    assert [cost.cycles for cost in M55.costs(block(ONE_ROW), True)] == [1, 2, 1, 0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("vldrb.s8 q0, [r0]\nvldrb.s8 q1, [r1]", [1, 2]),
        ("vldrb.s8 q0, [r0]\nadd r1, r2, r3\nvldrb.s8 q1, [r1]", [1, 1, 1]),
        ("vadd.i32 q0, q1, q2\nvmul.i32 q3, q4, q5", [1, 1]),
        ("vadd.i32 q0, q1, q2\nvadd.i32 q3, q4, q5", [1, 2]),
        ("vmul.i32 q0, q1, q2\nvmladava.s8 r2, q4, q5", [1, 2]),
        ("vldrb.u8 q0, [r0, q1]\nvldrb.u8 q2, [r1]", [1, 8]),
        ("vldrw.u32 q0, [r0, q1]\nvldrb.u8 q2, [r1]", [1, 2]),
        ("vldrb.u32 q0, [r0, q1]\nvldrb.u8 q2, [r1]", [1, 2]),
        ("ldrd r0, r1, [r2]\nadd r3, r4, r5", [1, 1]),
        ("adds.n r0, #1\nands.n r1, r2", [1, 0]),
        ("ands.n r1, r2\nadds.n r0, #1", [1, 0]),
        ("ands.n r1, r2\neors.n r0, r3", [1, 1]),
        ("adds.n r1, #1\nadds.n r1, #1", [1, 1]),
        ("adds.n r0, #1\nand r1, r2", [1, 1]),
    ],
)
def test_instructions_of_different_units_overlap(text: str, expected: list[int]) -> None:
    assert cycles(M55, text) == expected


@pytest.mark.parametrize(
    ("producer", "consumer", "expected"),
    [
        ("vldrw.u32 q0, [r0]", "vmla.s32 q1, q0, r2", 1), ("vmul.i32 q0, q1, q2", "vadd.i32 q3, q0, q4", 2),
        ("vmul.i32 q0, q1, q2", "vstrw.32 q0, [r0]", 1), ("vqrdmulh.s32 q0, q1, q2", "vrshl.s32 q0, q0, q3", 2),
        ("vrshl.s32 q0, q0, q3", "vmax.s32 q0, q0, q1", 2), ("vqmovnb.s32 q0, q1", "vstrw.32 q0, [r0]", 3),
        ("vmaxv.s8 r0, q1", "add r1, r0, r2", 4), ("vmov.i32 q0, #0", "vadd.i32 q1, q0, q2", 2),
        ("vidup.u32 q0, r0, #1", "vldrw.u32 q1, [r1, q0]", 5), ("vmladava.s8 r2, q0, q1", "add r3, r2, r4", 2),
        ("ldr r0, [r1]", "add r2, r0, r3", 2), ("mul r0, r1, r2", "add r3, r0, r4", 2),
        ("add r0, r1, r2", "add r3, r0, r4", 1), ("eor r1, r2, r3", "eor r4, r5, r1, ror #13", 2),
        ("eor r1, r2, r3", "eor r4, r1, r5, ror #13", 1), ("eor r1, r2, r3, ror #13", "eor r4, r1, r5", 1),
        ("eor r1, r2, r3", "eor r4, r5, r1", 1), ("add r0, r1, r2", "cmp r3, r0", 1),
        ("ldr r0, [r1]", "add r2, r3, r0", 2),
        ("eor r1, r2, r3", "mov r4, r1, ror #13", 1), ("ubfx r0, r1, #2, #3", "add r3, r0, r4", 1),
        ("ldr r0, [r1]", "vdup.32 q0, r0", 2), ("vfma.f32 s0, s1, s2", "vfma.f32 s0, s3, s4", 2),
    ],
)  # fmt: skip
def test_results_are_used_after_the_latency_of_the_guide(producer: str, consumer: str, expected: int) -> None:
    assert distance(M55, producer, consumer) == expected


def test_the_end_of_a_loop_is_free_and_its_start_is_not() -> None:
    assert [cost.cycles for cost in M55.costs(block("dls lr, r0"), False)] == [4]
    end = M55.costs(block(ONE_ROW), True)[-1]
    assert (end.cycles, end.taken) == (0, 0)


@pytest.mark.parametrize("text", ["subs.n r0, #1\nbne.n loop", "subs r0, #1\nbne loop", "subs.n r0, #1\nbne loop"])
def test_a_taken_branch_takes_three_cycles_with_its_place(text: str) -> None:
    assert iteration(M55, text) == 4
