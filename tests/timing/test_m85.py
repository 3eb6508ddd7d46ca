"""The pipeline of the Cortex-M85: pairs and latencies that were measured with an RA8D1 (JNK) or are LLVM's."""

import pytest

from mlfbuild.timing.cores.m85 import CORTEX_M85 as M85
from support.thumb import block, cycles, distance, iteration


@pytest.mark.parametrize(
    ("producer", "consumer", "expected"),
    [
        ("adds.n r0, r1", "adds.n r0, r2", 0), ("ldr r0, [r1]", "add.n r2, r0, r3", 0),
        ("ldrb r0, [r1]", "add.n r2, r0, r3", 1), ("ldr r0, [r1]", "ldr r2, [r0]", 2),
        ("ldr r0, [r1]", "mla r4, r5, r6, r0", 1), ("mul r0, r1, r2", "mla r3, r4, r5, r0", 1),
        ("eor r1, r2, r3", "eor r4, r1, r5", 0), ("eor r1, r2, r3", "eor r4, r5, r1", 1),
        ("add.n r0, r1, r2", "vdup.32 q0, r0", 0), ("ldr r0, [r1]", "vdup.32 q0, r0", 1),
        ("vmladava.s8 r2, q0, q1", "add.n r3, r2, r4", 3), ("vmladava.s8 r2, q0, q1", "vmladava.s8 r2, q2, q3", 2),
        ("vmul.i32 q0, q1, q2", "vadd.i32 q3, q0, q4", 2), ("vldrw.u32 q0, [r0]", "vadd.i32 q3, q0, q4", 1),
        ("vfma.f32 s0, s1, s2", "vfma.f32 s0, s3, s4", 2), ("vmul.f32 s0, s1, s2", "vadd.f32 s3, s0, s4", 3),
        ("csel r0, r1, r2, eq", "ldr r3, [r0]", 3), ("udiv r0, r1, r2", "add.n r3, r4, r5", 7),
    ],
)  # fmt: skip
def test_results_are_used_after_their_latency(producer: str, consumer: str, expected: int) -> None:
    assert distance(M85, producer, consumer) == expected


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        ("uxtb.n r0, r1", "uxtb.n r2, r3", False), ("uxtb.n r0, r1", "ubfx r2, r3, #0, #8", True),
        ("ldrd r0, r1, [r2]", "ldrd r3, r4, [r5]", False), ("ldrd r0, r1, [r2]", "strd r3, r4, [r5]", True),
        ("ldr r0, [r2]", "ldr r1, [r2, #4]", True), ("ldr r0, [r2]", "ldr r1, [r2, #8]", False),
        ("vadd.f32 s0, s1, s2", "vmov s3, r4", False), ("vadd.f32 s0, s1, s2", "vldr s3, [r4]", True),
        ("vadd.f64 d0, d1, d2", "add.n r0, r1, r2", False), ("add.n r0, r1, r2", "vldrw.u32 q0, [r3]", True),
        ("vldrw.u32 q0, [r3]", "add.n r0, r1, r2", False), ("uxtb.n r0, r1", "vadd.i32 q0, q1, q2", False),
        ("add.n r0, r1, r2", "vldrw.u32 q0, [r3, q1]", False), ("push {r4, r5}", "add.n r0, r1, r2", False),
    ],
)  # fmt: skip
def test_two_instructions_are_issued_together(first: str, second: str, together: bool) -> None:
    assert (cycles(M85, f"{first}\n{second}")[1] == 0) == together


def test_the_core_waits_for_the_second_half_of_a_vector_load_but_not_of_arithmetic() -> None:
    assert cycles(M85, "vldrw.u32 q0, [r0]\nveor q1, q2, q3\nadd.n r1, r2, r3") == [1, 1, 1]
    assert cycles(M85, "vldrw.u32 q0, [r0]\nadd.n r1, r2, r3") == [1, 2]
    assert cycles(M85, "veor q1, q2, q3\nadd.n r1, r2, r3") == [1, 1]


@pytest.mark.parametrize(
    ("loop", "expected"),
    [
        ("vldrb.s8 q0, [r0], #16\nvldrb.s8 q1, [r1], #16\nvmladava.s8 r2, q0, q1\nle lr, loop", 4),
        ("adds.n r0, r1\nadds.n r0, r1\nadds.n r0, r1\nadds.n r0, r1\nle lr, loop", 4),
        ("adds.n r0, #1\nadds.n r1, #1\nadds.n r2, #1\nadds.n r3, #1\nle lr, loop", 2),
    ],
)
def test_iterations_take_the_cycles_of_their_units_or_chains(loop: str, expected: int) -> None:
    assert iteration(M85, loop) == expected


def test_the_end_of_a_loop_is_mispredicted_and_that_of_a_hardware_loop_is_free() -> None:
    late, early = (
        "subs.n r0, #1\nbne.n loop",
        "subs.n r0, #1\nldrd r2, r3, [r1]\nldrd r4, r5, [r1]\nldrd r6, r7, [r1]\nbne.n loop",
    )
    assert [-M85.costs(block(loop), True)[-1].taken for loop in (late, early)] == [6, 4]
    end = M85.costs(block("adds.n r0, #1\nle lr, loop"), True)[-1]
    assert (end.cycles, end.taken) == (0, 0)
