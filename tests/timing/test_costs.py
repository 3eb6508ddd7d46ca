"""Cycles of the Cortex-M0+, M3 and M4, against the examples and tables of Arm's manuals."""

from dataclasses import replace

import pytest

from mlfbuild.timing import CORE_TIMINGS, DecodedInstruction, Instruction, WorkKind
from mlfbuild.timing.decode import decoded

M0PLUS, M3, M4 = "cortex-m0plus", "cortex-m3", "cortex-m4"


def block(text: str, size: int = 2) -> list[DecodedInstruction]:
    lines = [line.strip().partition(" ") for line in text.split(";")]
    return [decoded(Instruction(size * at, name, operands, ""), size) for at, (name, _, operands) in enumerate(lines)]


def cycles(core: str, text: str, size: int = 2) -> list[int]:
    return [int(cost.cycles) for cost in CORE_TIMINGS[core].costs(block(text, size), False)]


@pytest.mark.parametrize("core", [M3, M4])
@pytest.mark.parametrize("number", [1, 2, 4, 8])
@pytest.mark.parametrize(
    "form",
    ["ldmia r0!, {LIST}", "ldmia.w r0, {LIST}", "stmia r0!, {LIST}", "stmdb sp!, {LIST}", "push {LIST}", "pop {LIST}"],
)
def test_n_registers_take_one_cycle_more_than_n(core: str, number: int, form: str) -> None:
    registers = ", ".join(f"r{at}" for at in range(1, number + 1))
    assert cycles(core, form.replace("LIST", registers)) == [1 + number]


def test_lists_of_float_registers_take_one_cycle_more_than_their_words() -> None:
    assert cycles(M4, "vldmia r0!, {s0-s7}") == [1 + 8]
    assert cycles(M4, "vpush {d8-d9}") == [1 + 4]


@pytest.mark.parametrize("core", [M3, M4])
@pytest.mark.parametrize(
    ("text", "expected"),
    [  # the examples of "Load/store timings"
        ("ldr r0, [r1, #0]; ldr r1, [r2, #0]", [2, 1]),
        ("ldr r0, [r1, r2]; str r0, [r3, #20]", [2, 1]),
        ("ldr r0, [r1, r2]; str r1, [r3, r2]", [2, 1]),
        ("ldr r0, [r1, r5]; ldr r1, [r2, #0]; ldr r2, [r3, #4]", [2, 1, 1]),
        ("ldr r0, [r1, #0]; ldr r2, [r0, #0]", [2, 2]),  # the address depends on the load before
        ("str r0, [r1, #4]", [1]),
        ("str r0, [r1, r2]", [2]),
        ("str r0, [r1, #0]; ldr r2, [r3, #0]", [2, 2]),  # nothing can be pipelined after a store
        ("str r0, [r1, #0]; ldmia r3!, {r2, r4}", [2, 3]),
        ("str r0, [r1, #0]; str r2, [r3, #0]", [1, 1]),
        ("str r0, [r1, r2]; ldr r2, [r3, #0]", [2, 2]),  # its second cycle is in its cost already
        ("stmia r1!, {r0, r2}; ldr r4, [r3, #0]", [3, 2]),
        ("ldr r0, [r1], #4; ldr r2, [r3, #0]", [2, 1]),
        ("ldr r0, [r1], #4; ldr r2, [r1], #4", [2, 2]),  # the same base
        ("strb r0, [r1], #1; strb r2, [r1], #1", [1, 2]),
        ("strb r0, [r1], #1; strb r2, [r3], #1", [1, 1]),
        ("push {r4, lr}; ldr r4, [sp, #8]", [3, 2]),
        ("ldr r0, [r1, #0]; nop", [1, 1]),
        ("ldr r0, [r1, #0]; cmp r2, #1", [2, 1]),
        ("ldrd r0, r1, [r2]; ldr r3, [r4, #0]", [3, 2]),
        ("strd r0, r1, [r2]", [3]),
        ("adds r1, #4; ldr r0, [r1, #0]", [1, 3]),  # there is no forwarding path to the address
        ("adds r0, #4; str r0, [r1, #0]", [1, 1]),
        ("adds r0, #1; cmp r0, r2; it eq; moveq r0, r1", [1, 1, 0, 1]),
    ],
)
def test_loads_and_stores_overlap_as_the_manual_says(core: str, text: str, expected: list[int]) -> None:
    assert cycles(core, text) == expected


def test_only_the_m4_overlaps_loads_that_update_different_bases() -> None:
    text = "ldr r0, [r1], #4; ldr r2, [r3], #4; ldr r4, [r5, #0]"
    assert (cycles(M3, text, size=4), cycles(M4, text, size=4)) == ([2, 2, 1], [2, 1, 1])


def test_loads_of_32_bits_across_words_do_not_overlap() -> None:
    text = "ldr.w r0, [r1, #0]; ldr.w r2, [r3, #0]; str.w r2, [r3, #0]"
    across = [replace(each, address=each.address + 2) for each in block(text, size=4)]
    assert cycles(M4, text, size=4) == [2, 1, 1]
    assert [int(cost.cycles) for cost in CORE_TIMINGS[M4].costs(across, False)] == [2, 2, 1]


@pytest.mark.parametrize(
    ("text", "m3", "m4"),
    [
        ("mul r0, r1, r2", 1, 1),
        ("mla r0, r1, r2, r3", 2, 1),
        ("smull r0, r1, r2, r3", 4, 1),
        ("smlal r0, r1, r2, r3", 5, 1),
        ("udiv r0, r1, r2", 7, 7),
    ],
)
def test_multiplication_and_division(text: str, m3: int, m4: int) -> None:
    assert (cycles(M3, text), cycles(M4, text)) == ([m3], [m4])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("smlad r0, r1, r2, r0; smlald r0, r1, r2, r3; ssat r0, #8, r1, asr #1; sxtb16 r0, r1", [1, 1, 1, 1]),
        ("vadd.f32 s0, s1, s2; vmul.f32 s3, s4, s5", [1, 1]),
        ("vadd.f32 s0, s1, s2; vmul.f32 s3, s0, s5", [1, 2]),  # needs the result of the instruction before
        ("vmul.f32 s0, s1, s2; vmla.f32 s0, s4, s5", [1, 3]),  # as the addend, which is needed one cycle later
        ("vmul.f32 s0, s1, s2; vfma.f32 s3, s0, s5", [1, 4]),
        ("vdiv.f32 s0, s1, s2; vsqrt.f32 s4, s5", [14, 14]),
        ("vldr s0, [r0]; vldr s1, [r0, #4]; vstr s0, [r1]", [2, 1, 1]),
        ("vldr d0, [r0]", [3]),
        ("vmov r0, r1, d0", [2]),
        ("vmov.f32 s0, s1", [1]),
    ],
)
def test_dsp_and_float_instructions_of_the_m4(text: str, expected: list[int]) -> None:
    assert cycles(M4, text, size=4) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("adds r0, r1, r2", 1), ("muls r0, r1, r0", 1), ("ldr r0, [r1, #4]", 2), ("strb r0, [r1, #4]", 2),
        ("ldmia r0!, {r1, r2, r3}", 4), ("stmia r0!, {r1, r2}", 3), ("push {r4, lr}", 3), ("pop {r4, r5}", 3),
        ("mrs r0, PRIMASK", 3),
    ],
)  # fmt: skip
def test_the_m0plus_overlaps_nothing(text: str, expected: int) -> None:
    assert cycles(M0PLUS, f"{text}; {text}") == [expected, expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("beq.n 100 <f>", {M0PLUS: (1, 1), M3: (1, 1), M4: (1, 1)}),
        ("b.n 100 <f>", {M0PLUS: (1, 1), M4: (1, 1)}),
        ("bl 100 <f>", {M0PLUS: (2, 1), M4: (1, 1)}),
        ("bx lr", {M0PLUS: (1, 1), M4: (1, 2)}),
        ("pop {r4, pc}", {M0PLUS: (3, 2), M4: (3, 3)}),
        ("ldr pc, [r0, r1, lsl #2]", {M4: (2, 3)}),
        ("tbb [pc, r0]", {M4: (3, 3)}),
    ],
)
def test_a_taken_branch_fills_the_pipeline_again(text: str, expected: dict[str, tuple[int, int]]) -> None:
    for core, (cycles_of_it, more) in expected.items():
        (cost,) = CORE_TIMINGS[core].costs(block(text), False)
        assert (cost.cycles, cost.taken) == (cycles_of_it, more), core


def test_branches_and_transfers_are_separate_kinds_of_work() -> None:
    text = "ldr r0, [r1, #0]; adds r0, #1; bne.n 0 <f>"
    kinds = [cost.kind for cost in CORE_TIMINGS[M4].costs(block(text), True)]
    assert kinds == [WorkKind.MEMORY, WorkKind.ARITHMETIC, WorkKind.BRANCH]
