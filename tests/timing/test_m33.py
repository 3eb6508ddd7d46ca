"""The pipeline of the Cortex-M33: facts of the measurements that the costs are taken from."""

import pytest

from mlfbuild.timing.cores.m33 import CORTEX_M33 as M33
from support.thumb import block, cycles, distance, iteration


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("add r0, r1, r2\nadd r3, r4, r5", [1, 1]),
        ("adds.n r0, r1\nadds.n r3, r4", [1, 1]),
        ("ldr.n r0, [r1]\nadds.n r3, r4", [1, 1]),
        ("ldr.n r0, [r1]\nnop", [1, 0]),
        ("adds.n r0, r1\nit eq", [1, 0]),
        ("adds r0, r1\nit eq", [1, 1]),
        ("ldmia.n r6!, {r0, r1, r2, r3}\nbne.n loop", [4, 0]),
        ("ldmia r0, {r1, r2, r3, r4, r5}", [5]),
        ("push {r4, r5, lr}", [3]),
        ("ldrd r0, r1, [r2]\nstrd r4, r5, [r6]", [2, 2]),
        ("vldmia r0!, {s0, s1, s2, s3}", [4]),
        ("vldr d0, [r0]", [2]),
        ("muls.n r0, r1, r0", [2]),
        ("mul r0, r1, r2", [1]),
        ("adds r0, r1, #0x1fc0", [2]),
        ("add r0, r1, #0x1fc0", [1]),
        ("smlad r0, r1, r2, r0\nsmlad r3, r1, r2, r3", [1, 1]),
        ("ldr r0, [r1]\nldr r2, [r1, #4]\nsmlad r3, r0, r2, r3", [1, 1, 2]),
    ],
)
def test_blocks_take_the_measured_cycles(text: str, expected: list[int]) -> None:
    assert cycles(M33, text) == expected


@pytest.mark.parametrize(
    ("producer", "consumer", "expected"),
    [
        ("ldr r0, [r1]", "add r2, r0, r3", 2), ("ldr r0, [r0]", "ldr r0, [r0]", 2),
        ("ldr r0, [r1]", "str r0, [r2]", 1), ("ldr r0, [r1]", "mla r2, r3, r4, r0", 1),
        ("ldr r0, [r1]", "sxtab r2, r0, r3", 2), ("smull r0, r1, r2, r3", "add r4, r0, r5", 2),
        ("smull r0, r1, r2, r3", "smlal r0, r1, r4, r5", 1), ("smlad r0, r1, r2, r0", "smlad r0, r3, r4, r0", 1),
        ("smlad r0, r1, r2, r0", "str r0, [r3]", 1), ("add r0, r1, r2, lsl #3", "add r4, r0, r5", 1),
        ("add r0, r1, r2, ror #3", "add r4, r0, r5", 2), ("mov r0, r1, ror #3", "add r4, r0, r5", 1),
        ("uadd16 r0, r1, r2", "add r4, r0, r5", 2), ("pkhbt r0, r1, r2", "add r4, r0, r5", 2),
        ("sxtab16 r0, r1, r2", "add r4, r0, r5", 2), ("sxtab16 r0, r1, r2", "sxtab16 r0, r0, r3", 1),
        ("sxtb16 r0, r1", "smlad r2, r0, r3, r2", 1), ("bfi r0, r1, #2, #3", "add r4, r0, r5", 1),
        ("vldr s0, [r0]", "vmul.f32 s1, s0, s2", 1), ("vfma.f32 s0, s1, s2", "vfma.f32 s0, s3, s4", 3),
        ("vfma.f32 s0, s1, s2", "vfma.f32 s5, s3, s4", 3), ("vfma.f32 s0, s1, s2", "vldr s8, [r0]", 3),
        ("vfma.f32 s0, s1, s2", "add r0, r1, r2", 1), ("vfma.f32 s0, s1, s2", "vstr s0, [r0]", 4),
    ],
)  # fmt: skip
def test_results_are_used_after_the_measured_latency(producer: str, consumer: str, expected: int) -> None:
    assert distance(M33, producer, consumer) == expected


@pytest.mark.parametrize(
    ("text", "taken", "not_taken"),
    [
        ("subs.n r7, #1\nbne.n loop", 3, 1),
        ("subs.n r7, #1\nadd.n r0, r1\nbne.n loop", 3, 2),
        ("subs.n r7, #1\nldmia.n r6!, {r0, r1, r2, r3}\nbne.n loop", 6, 5),
        ("subs r7, #1\nbne loop", 3, 2),
    ],
)
def test_branches_take_the_measured_cycles(text: str, taken: int, not_taken: int) -> None:
    assert iteration(M33, text) == taken
    assert sum(cost.cycles for cost in M33.costs(block(text), False)) == not_taken
