"""The stack depth of one function from objdump's output."""

import pytest

from mlfbuild.report.stack import arm, riscv
from mlfbuild.report.stack.deepest_stack import CallGraph
from mlfbuild.report.stack.function import Frame, frame_of
from mlfbuild.report.stack.steps import Decoder
from mlfbuild.timing import Disassembly

START = 0x100


def listing(text: str, ends: str) -> Disassembly:
    """Return objdump's output: two bytes per line from ``START`` on; a name and a colon begin a function.

    Jumps through tables have four bytes, followed by the table. The functions g and h are at 0x400 and 0x500; ``ends``
    is their return instruction.
    """
    lines, address = [], START
    for line in filter(None, (line.strip() for line in text.splitlines())):
        if line.endswith(":"):
            lines.append(f"\n{address:08x} <{line[:-1]}>:")
        else:
            lines.append(f" {address:x}:\t" + line.replace(" ", "\t", 1))
            address += 4 if line.startswith("tb") or "_case_" in line else 2
    others = [f"\n{at:08x} <{name}>:\n {at:x}:\t{ends}" for name, at in (("g", 0x400), ("h", 0x500))]
    return Disassembly("\n".join([*lines, *others]) + "\n")


def frame(text: str, decode: Decoder = arm.decode, words: dict[int, int] | None = None) -> Frame:
    ends = "bx\tlr" if decode is arm.decode else "ret"
    return frame_of(START, listing(text if text.startswith("f:") else f"f:\n{text}", ends), decode, (words or {}).get)


def calls(found: Frame) -> list[tuple[int | None, int]]:
    return [(call.target, depth) for call, depth in found.calls]


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("bx lr", 0),
        ("push {r4, r5, lr}\n sub sp, #16\n add sp, #16\n pop {r4, r5, pc}", 28),
        ("stmdb sp!, {r4, r5, r6, r7, r8, r9, sl, fp, lr}\n ldmia.w sp!, {r4, r5, r6, r7, r8, r9, sl, fp, pc}", 36),
        ("vpush {d8-d15}\n vpush {s16}\n sub.w sp, sp, #400\t@ 0x190\n udf #255", 468),
        ("str.w lr, [sp, #-4]!\n strd r4, r5, [sp, #-16]!\n ldrd r4, r5, [sp], #16\n ldr.w pc, [sp], #4", 20),
        ("push {r4}\n pop {r4}\n push {r4}\n pop {r4}\n bx lr", 4),
        ("stmfd sp!, {r4, lr}\n ldmfd sp!, {r4, lr}\n bx lr", 8),
        ("vstmdb sp!, {d8}\n vldmia sp!, {d8}\n bx lr", 8),
        ("it ne\n pushne {r4, r5}\n bx lr", 8),
        ("push {r4, lr}\n it eq\n popeq {r4, pc}\n sub sp, #8\n add sp, #8\n pop {r4, pc}", 16),
    ],
)
def test_pushes_and_pops(text: str, size: int) -> None:
    assert frame(text) == Frame(size, ())


def test_deeper_stack_counts_if_paths_meet() -> None:
    found = frame("cbz r0, 108 <f+0x8>\n push {r4, r5, r6, lr}\n bl 400 <g>\n pop {r4, r5, r6, pc}\n b.n 500 <h>")
    assert found.size == 16 and sorted(calls(found)) == [(0x400, 16), (0x500, 0)]
    assert frame("cmp r0, #0\n beq.n 106 <f+0x6>\n push {r4}\n push {r5}\n bl 400 <g>\n udf #0").calls[0][1] == 8


def test_jump_to_another_function_is_a_tail_call() -> None:
    found = frame("f:\npush {r4, lr}\npop {r4, lr}\nb.w 106 <g>\ng:\npush {r4}\nbx lr")
    assert (found.size, calls(found)) == (8, [(0x106, 0)])


def test_function_that_falls_through_calls_the_next() -> None:
    found = frame("f:\npush {r4}\npop {r4}\ng:\nbx lr")
    assert (found.size, calls(found)) == (4, [(0x104, 0)])


def test_tail_call_does_not_return() -> None:
    found = frame("f:\npush {r4, lr}\nbl 104 <g>\ng:\nbx lr")
    assert calls(found) == [(0x104, 8)], "what lies behind it is no part of f"
    assert calls(frame("push {r4, lr}\n bl 400 <abort>\n .word 0x20000000")) == [(0x400, 8)]


def test_cold_part_of_a_function() -> None:
    text = (
        "f:\npush {r4, lr}\ncbnz r0, 108 <f.cold>\npop {r4, pc}\nudf #0\n"
        "f.cold:\nsub sp, #32\nbl 400 <g>\nadd sp, #32\nb.w 104 <f+0x4>"
    )
    found = frame(text)
    assert (found.size, calls(found)) == (40, [(0x400, 40)])


def test_bl_is_also_a_far_jump() -> None:
    found = frame(
        "push {r7, lr}\n cbnz r0, 106 <f+0x6>\n bl 108 <f+0x8>\n nop\n sub sp, #8\n add sp, #8\n pop {r7, pc}"
    )
    assert found == Frame(16, ()), "Thumb without a wide B has no other one"
    assert frame("push {r4, lr}\n bl 100 <f>\n pop {r4, pc}").calls[0][0].target == START, "and this is recursion"


def test_frame_pointers() -> None:
    gcc = (
        "push {r7, lr}\n sub sp, #24\n add r7, sp, #0\n movs r3, #1\n"
        " str r3, [r7, #4]\n adds r7, #24\n mov sp, r7\n pop {r7, pc}"
    )
    clang = (
        "push {r4, r6, r7, lr}\n add r7, sp, #8\n sub sp, #64\n bl 400 <g>\n"
        " sub.w r4, r7, #8\n mov sp, r4\n push {r0}\n pop {r4, r6, r7, pc}"
    )
    assert frame(gcc) == Frame(32, ())
    assert (frame(clang).size, calls(frame(clang))) == (80, [(0x400, 80)])
    lost = "push {r7, lr}\n add r7, sp, #0\n ldr r7, [r0, #0]\n mov sp, r7\n pop {r7, pc}"
    assert "known only at run time, at 0x106 (mov sp, r7)" in frame(lost).problem
    written = lost.replace("ldr r7, [r0, #0]", "ldrb r3, [r7, #-4]!")
    assert frame(written) == Frame(12, ()), "an access may move it"


def test_frames_too_large_for_an_instruction() -> None:
    literal = (
        "push {r4, lr}\n ldr r4, [pc, #8]\t@ (10c <f+0xc>)\n add sp, r4\n"
        " ldr r4, [pc, #4]\t@ (110 <f+0x10>)\n add sp, r4\n pop {r4, pc}"
    )
    words = {0x10C: (-1040) & 0xFFFFFFFF, 0x110: 1040}
    assert frame(literal, words=words) == Frame(1048, ())
    halves = "movw ip, #4464\n movt ip, #1\n sub.w sp, sp, ip\n add.w sp, sp, ip\n bx lr"
    assert frame(halves) == Frame(70000, ())
    shifted = "movs r3, #130\n lsls r3, r3, #3\n negs r3, r3\n add sp, r3\n bx lr"
    assert frame(shifted) == Frame(1040, ())


def test_aligned_stack_addresses_count_as_the_deepest_possible() -> None:
    assert frame("push {r4, r7, lr}\n add r7, sp, #4\n mov r4, sp\n bfc r4, #0, #4\n mov sp, r4\n udf #0").size == 24
    assert frame("push {r4, lr}\n mov r4, sp\n bic.w r4, r4, #31\n mov sp, r4\n udf #0").size == 36


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("push {r4, lr}\n sub.w sp, sp, r3\n bx lr", r"known only at run time, at 0x102 (sub.w sp, sp, r3): alloca, "),
        ("movs r2, #8\n strex r2, r1, [r0]\n sub sp, r2\n bx lr", "at 0x104 (sub sp, r2)"),
        ("movs r2, #8\n stlexb r2, r1, [r0]\n sub sp, r2\n bx lr", "at 0x104 (sub sp, r2)"),
        ("movs r0, #8\n bkpt 0x00ab\n sub sp, r0\n bx lr", "at 0x104 (sub sp, r0)"),
        ("movs r0, #8\n svc 0\n sub sp, r0\n bx lr", "at 0x104 (sub sp, r0)"),
        ("msr MSP, r0\n bx lr", "at 0x100 (msr MSP, r0): alloca, a variable-length array or another stack"),
        ("ldr.w sp, [r0, #4]\n bx lr", "at 0x100 (ldr.w sp, [r0, #4])"),
        ("push {r4}\n b.n 100 <f>", "pushes in a loop at 0x100 without a known limit"),
        ("push {r4}\n @ <UNDEFINED> instruction: 0xeeee", "has an instruction at 0x102 that objdump does not know"),
        ("b.n 900 <elsewhere+0x8>", "continues at 0x900, which is not code"),
    ],
)  # fmt: skip
def test_unknown_stacks(text: str, reason: str) -> None:
    assert reason in frame(text).problem


def test_other_special_registers_do_not_change_the_stack() -> None:
    assert frame("msr BASEPRI, r0\n msr MSPLIM, r1\n push {r4}\n bx lr") == Frame(4, ())


def test_pointer_into_a_local_array() -> None:
    walks = (
        "sub sp, #32\n add r3, sp, #32\n strb.w r0, [r3, #-1]!\n subs r1, #1\n bne.n 104 <f+0x4>\n add sp, #32\n bx lr"
    )
    assert frame(walks) == Frame(32, ())
    assert frame(walks.replace("strb.w r0, [r3, #-1]!", "subs r3, #4")) == Frame(32, ())


CASES = """
    push {r4, lr}
    cmp r0, #1
    TABLE
    .short 0x0401
    sub sp, #40
    add sp, #40
    pop {r4, pc}
    bl 400 <g>
    pop {r4, pc}
"""


@pytest.mark.parametrize(
    "jump", ["ldr pc, [r1, r0, lsl #2]", "bx r3", "mov pc, r3", "add pc, r3", "bl 600 <__gnu_thumb1_case_si>"]
)
def test_unknown_tables_lead_to_unreached_code(jump: str) -> None:
    found = frame(CASES.replace("TABLE", jump))
    assert found.size == 48 and (0x400, 8) in calls(found) and not found.problem


@pytest.mark.parametrize("jump", ["tbb [pc, r0]", "bl 600 <__gnu_thumb1_case_uqi>", "bl 600 <__gnu_thumb1_case_sqi>"])
def test_known_tables_lead_to_their_targets(jump: str) -> None:
    found = frame(CASES.replace("TABLE", jump), words={0x108: 0x0504})
    assert (0x400, 8) in calls(found) and found.size == 8, "nothing leads to the part that takes more"


def test_tables_of_half_words_and_code_after_a_table() -> None:
    text = CASES.replace("TABLE", "tbh [pc, r0, lsl #1]").replace(
        ".short 0x0401", ".short 4\n.short 4\n.word 0x40004000"
    )
    words = {0x108: 0x0006_0006, 0x10C: 3}
    assert frame(text, words=words).size == 8, "the comparison says that the table has two entries"
    assert frame(text.replace("cmp r0, #1", "nop"), words=words).size == 48


def test_unknown_tables_at_different_depths() -> None:
    text = "add pc, r3\n .short 1\n bl 400 <g>\n bx lr\n push {r4, r5}\n add pc, r4\n .short 1\n bl 500 <h>\n udf #0"
    assert frame(text).problem == "jumps through unknown tables at different stack depths"
    assert dict(calls(frame(text.replace("push {r4, r5}", "nop\nnop"))))[0x500] == 0


def test_calls_through_registers() -> None:
    known = "push {r4, lr}\n ldr r4, [pc, #8]\t@ (10c <f+0xc>)\n bl 400 <g>\n blx r4\n mov r3, r4\n bx r3"
    assert calls(frame(known, words={0x10C: 0x501})) == [(0x400, 8), (0x500, 8), (0x500, 8)]
    found = frame("push {r4, lr}\n bl 400 <g>\n blx r3\n pop {r4, lr}\n bx r3")
    assert calls(found) == [(0x400, 8), (None, 8), (None, 0)]


def test_helium_loops() -> None:
    text = (
        "push {r4, lr}\n wls lr, r3, 10a <f+0xa>\n sub sp, #8\n"
        " add sp, #8\n le lr, 104 <f+0x4>\n letp lr, 104 <f+0x4>\n pop {r4, pc}"
    )
    assert frame(text) == Frame(16, ())


@pytest.mark.parametrize(
    ("text", "size", "targets"),
    [
        ("add sp,sp,-32\n sw ra,28(sp)\n jal 400 <g>\n lw ra,28(sp)\n add sp,sp,32\n ret", 32, [(0x400, 32)]),
        ("addi sp,sp,-32\n j 400 <g>", 32, [(0x400, 32)]),
        ("lui t0,0xffffe\n addi t0,t0,192 # ffffe0c0 <x>\n add sp,sp,t0\n sub sp,sp,t0\n ret", 8000, []),
        ("li t1,-2048\n add sp,sp,t1\n neg t1,t1\n add sp,sp,t1\n ret", 2048, []),
        ("add sp,sp,-16\n add s0,sp,16\n add sp,s0,-64\n mv sp,s0\n ret", 64, []),
        ("beqz a0,106 <f+0x6>\n add sp,sp,-16\n add sp,sp,-16\n jal 400 <g>\n ret", 32, [(0x400, 32)]),
        ("add sp,sp,-16\n and sp,sp,-16\n ret", 28, []),
        ("add sp,sp,-16\n jalr a5\n jalr 24(ra) # 400 <g>\n add sp,sp,16\n jr a5", 16,
         [(0x400, 16), (None, 0), (None, 16)]),
        ("add sp,sp,-16\n jr a5\n add sp,sp,-16\n jal 400 <g>\n unimp", 32, [(0x400, 32)]),
    ],
)  # fmt: skip
def test_risc_v(text: str, size: int, targets: list[tuple[int | None, int]]) -> None:
    found = frame(text, riscv.decode)
    assert (found.size, sorted(calls(found), key=str)) == (size, sorted(targets, key=str))


@pytest.mark.parametrize(
    "text", ["sub sp,sp,a0\n ret", "jal t0,400 <__riscv_save_0>\n ret", "cm.push {ra, s0},-32\n ret"]
)
def test_unknown_stacks_of_risc_v(text: str) -> None:
    assert "known only at run time, at 0x100" in frame(text, riscv.decode).problem


def test_entry_that_is_not_code_has_an_unknown_stack() -> None:
    """The symbol of a model's entry may lie anywhere in a damaged image."""
    found = CallGraph(listing("f:\nbx lr", "bx\tlr"), arm.decode, {}.get, {}).depth(0x10)
    assert (found.size, found.path, found.reason) == (None, (), "0x10 is not code")
