"""The pipeline of the Cortex-M7: facts of the measurements that the costs are taken from."""

from fractions import Fraction

import pytest

from mlfbuild.timing.cores.m7 import CORTEX_M7 as M7
from support.thumb import block, cycles, distance, iteration

PAIRS = [
    ("add r0, r1, r2", "add r3, r4, r5"), ("movw r0, #1", "movt r0, #2"), ("ldr r0, [r1]", "add r2, r3, r4"),
    ("ldr r0, [r1]", "ldr r2, [r1, #4]"), ("ldr r0, [r1]", "str r2, [r3]"), ("ldr r0, [r1]", "str r0, [r3]"),
    ("smlad r0, r1, r2, r0", "ldr r3, [r4]"), ("sxtb16 r0, r1", "smlad r2, r3, r4, r2"),
    ("add r0, r1, r2, lsl #2", "smlad r2, r3, r4, r2"), ("add r0, r1, r2", "eor r6, r0, r6, ror #22"),
    ("add r0, r1, r2, lsl #2", "lsr r3, r4, #2"), ("and r0, r1, #255", "add r2, r3, r4, lsl #2"),
    ("eor r0, r1, #0x1b1b1b1b", "add r2, r3, r4, lsl #2"), ("ldr r4, [r5], #4", "add r5, r5, #1"),
    ("mov r3, r3, ror #18", "mov r4, r4, ror #22"), ("mov r3, r3, ror #18", "bic r1, r5, r3"),
    ("subs r0, r0, #1", "bne loop"), ("vmul.f32 s0, s1, s2", "vldr s4, [r0]"),
    ("vadd.f32 s0, s1, s2", "vstr s0, [r0]"),
]  # fmt: skip
"""Instructions that are issued together; the last pair shows VSTR's data a cycle later than its address."""
NO_PAIRS = [
    ("add r0, r1, r2", "ldr r3, [r0]"), ("eor r0, r1, r2", "eor r3, r0, r4"),
    ("smlad r0, r1, r2, r0", "smlad r3, r1, r2, r3"), ("mul r0, r1, r2", "str r3, [r4]"),
    ("str r0, [r1]", "str r2, [r3]"), ("ldr r0, [r1]", "ldr r2, [r1, #8]"), ("ldrd r0, r1, [r2]", "add r3, r4, r5"),
    ("sxtb16 r0, r1", "sxtb16 r2, r3"), ("add r0, r1, r2", "sxtb16 r3, r4"),
    ("add r0, r1, r2, lsl #2", "add r3, r4, r5, lsl #2"), ("eor r0, r1, #0x1fc0", "add r3, r4, r5, lsl #2"),
    ("lsr r0, r1, #2", "add r3, r4, r5, lsl #2"), ("ubfx r0, r1, #2, #3", "add r3, r4, r5, lsl #2"),
    ("vmul.f32 s0, s1, s2", "vadd.f32 s3, s4, s5"), ("vfma.f32 s0, s1, s2", "vldr s4, [r0]"),
    ("ldm r0, {r1, r2}", "add r3, r4, r5"),
]  # fmt: skip


@pytest.mark.parametrize(("first", "second"), PAIRS[:-1])
def test_pairs_are_issued_together(first: str, second: str) -> None:
    assert cycles(M7, f"{first}\n{second}")[:1] == [1]
    assert [cost.cycles for cost in M7.costs(block(f"{first}\n{second}"), False)][1] in {0, 8}


@pytest.mark.parametrize(("first", "second"), NO_PAIRS)
def test_other_instructions_are_not_issued_together(first: str, second: str) -> None:
    assert cycles(M7, f"{first}\n{second}")[1] >= 1


def test_loads_of_unknown_banks_cost_half_a_cycle_together() -> None:
    assert cycles(M7, "ldr r0, [r1], #4\nldr r2, [r3], #4") == [1, Fraction(1, 2)]


@pytest.mark.parametrize(
    ("producer", "consumer", "expected"),
    [
        ("ldr r0, [r1]", "and r2, r0, r3", 1), ("ldr r0, [r1]", "ldr r2, [r0]", 2),
        ("ldr r0, [r1]", "add r2, r3, r0, lsl #2", 2), ("ldr r0, [r1]", "add r2, r0, r3, lsl #2", 2),
        ("ldrb r0, [r1]", "add r2, r0, r3, lsl #2", 2), ("and r0, r1, r2", "add r2, r0, r3, lsl #2", 1),
        ("ldr r0, [r1]", "smlad r2, r0, r3, r2", 2), ("ldrb r0, [r1]", "and r2, r0, r3", 2),
        ("ldrb r0, [r1]", "ldr r2, [r3, r0]", 3), ("ldrb r0, [r1]", "mla r2, r3, r4, r0", 1),
        ("smlad r0, r1, r2, r0", "smlad r0, r3, r4, r0", 1), ("smlad r0, r1, r2, r0", "and r3, r0, r4", 2),
        ("smull r0, r1, r2, r3", "smlal r0, r1, r4, r5", 1), ("uxtb r0, r1", "and r2, r0, r3", 1),
        ("uxtb r0, r1", "ldr r2, [r3, r0]", 2), ("ssat r0, #8, r1", "and r2, r0, r3", 2),
        ("cmp r0, r1", "addne r2, r3, r4", 1), ("vmul.f32 s0, s1, s2", "vadd.f32 s3, s0, s4", 3),
        ("vfma.f32 s0, s1, s2", "vfma.f32 s0, s3, s4", 3), ("vfma.f32 s0, s1, s2", "vmul.f32 s3, s0, s4", 5),
        ("vfma.f32 s0, s1, s2", "vfma.f32 s3, s4, s5", 1), ("vfma.f32 s0, s1, s2", "vadd.f32 s3, s4, s5", 4),
        ("vmla.f32 s0, s1, s2", "vfma.f32 s3, s4, s5", 2), ("vmla.f32 s0, s1, s2", "vmul.f32 s3, s0, s4", 6),
        ("vldr s0, [r0]", "vmul.f32 s1, s0, s2", 1), ("vldr s0, [r0]", "vfma.f32 s0, s1, s2", 3),
        ("vmov s0, r0", "vadd.f32 s1, s0, s2", 3), ("vdiv.f32 s0, s1, s2", "vadd.f32 s3, s4, s5", 16),
        ("ldrd r0, r1, [r2]", "and r3, r4, r5", 1), ("ldmia r0!, {r1, r2, r3, r4}", "and r5, r6, r7", 2),
        ("ldmia r0!, {r1, r2, r3}", "and r5, r6, r7", 2), ("push {r4, r5, r6, r7, lr}", "and r0, r1, r2", 3),
        ("vldmia r0!, {s0, s1, s2, s3}", "and r5, r6, r7", 2),
    ],
)  # fmt: skip
def test_results_are_used_after_the_measured_latency(producer: str, consumer: str, expected: int) -> None:
    assert distance(M7, producer, consumer) == expected


def test_arithmetic_runs_early_if_its_operands_are_ready() -> None:
    early = "add r0, r1, r2\nand r8, r9, r10\nldr r3, [r0]"
    late = "and r4, r1, r2\nand r8, r9, r10\nldr r3, [r4]"
    assert [sum(cycles(M7, text)) for text in (early, late)] == [2, 3]


def test_a_loop_of_dot_products_takes_a_cycle_per_multiplication() -> None:
    text = """ldrd r4, r5, [r0], #8
ldrd r6, r7, [r1], #8
sxtb16 r8, r4
smlad r2, r8, r6, r2
subs.n r3, #1
smlad r2, r5, r7, r2
bne.n loop"""
    assert 4 <= iteration(M7, text) <= 5


def test_three_chains_of_multiply_accumulates_hide_the_latency() -> None:
    one = "vfma.f32 s0, s4, s8\nsubs.n r0, #1\nbne.n loop"
    three = "vfma.f32 s0, s4, s8\nadds.n r1, #4\nvfma.f32 s1, s4, s9\nsubs.n r0, #1\nvfma.f32 s2, s4, s10\nbne.n loop"
    assert iteration(M7, one) == iteration(M7, three) == 3


def test_the_end_of_a_loop_is_mispredicted() -> None:
    branch = M7.costs(block("subs.n r0, #1\nbne.n loop"), True)[1]
    assert (branch.cycles, branch.taken) == (8, -8)
    early = "subs.n r0, #1\nldrd r2, r3, [r1]\nldrd r4, r5, [r1]\nldrd r6, r7, [r1]\nbne.n loop"
    branch = M7.costs(block(early), True)[-1]
    assert (branch.cycles, branch.taken) == (7, -6)
    forward = M7.costs(block("subs.n r0, #1\nbne.n behind"), False)[1]
    assert (forward.cycles, forward.taken) == (0, 1)
