"""Registers, transfers and targets of instructions, as objdump prints them."""

from pathlib import Path

import pytest

from mlfbuild.core.errors import InputFileError
from mlfbuild.timing import Disassembly, Instruction, disassembled
from mlfbuild.timing.decode import decoded


@pytest.mark.parametrize(
    ("text", "name", "condition", "reads", "writes"),
    [
        ("adds r0, r1, #1", "add", "", "r1", "r0 flags"),
        ("add.w r0, r1", "add", "", "r0 r1", "r0"),
        ("addeq r0, r1, r2", "add", "eq", "r1 r2 flags", "r0"),
        ("adc.w r0, r1, r2", "adc", "", "r1 r2 flags", "r0"),
        ("muls r0, r1", "mul", "", "r0 r1", "r0 flags"),
        ("mls r0, r1, r2, r3", "mls", "", "r1 r2 r3", "r0"),
        ("movls r0, #1", "mov", "ls", "flags", "r0"),
        ("movt r0, #1", "movt", "", "r0", "r0"),
        ("bfi r0, r1, #4, #4", "bfi", "", "r0 r1", "r0"),
        ("cmp r0, sl", "cmp", "", "r0 r10", "flags"),
        ("smlad ip, r4, r5, ip", "smlad", "", "r12 r4 r5", "r12"),
        ("smlal r0, r1, r2, r3", "smlal", "", "r0 r1 r2 r3", "r0 r1"),
        ("smull r0, r1, r2, r3", "smull", "", "r2 r3", "r0 r1"),
        ("ldr.w r0, [r1, r2, lsl #2]", "ldr", "", "r1 r2", "r0"),
        ("ldrb r0, [r1], #1", "ldrb", "", "r1", "r0 r1"),
        ("ldr r0, [r1, #4]!", "ldr", "", "r1", "r0 r1"),
        ("ldrd r0, r1, [r2, #8]", "ldrd", "", "r2", "r0 r1"),
        ("str r0, [r1, #4]", "str", "", "r0 r1", ""),
        ("strh r0, [r1], #2", "strh", "", "r0 r1", "r1"),
        ("strex r0, r1, [r2]", "strex", "", "r1 r2", "r0"),
        ("ldmia r0!, {r1, r2}", "ldmia", "", "r0", "r0 r1 r2"),
        ("ldmia.w r0, {r1, r2}", "ldmia", "", "r0", "r1 r2"),
        ("stmdb sp!, {r4, fp, lr}", "stmdb", "", "r4 r11 lr sp", "sp"),
        ("push {r4, lr}", "push", "", "r4 lr sp", "sp"),
        ("pop {r4, pc}", "pop", "", "sp", "r4 pc sp"),
        ("bl 100 <f>", "bl", "", "", "lr"),
        ("bls.n 100 <f>", "b", "ls", "flags", ""),
        ("cbz r3, 100 <f>", "cbz", "", "r3", ""),
        ("sel r0, r1, r2", "sel", "", "r1 r2 flags", "r0"),
        ("vldr s0, [r1, #4]", "vldr", "", "r1", "s0"),
        ("vstr d0, [sp]", "vstr", "", "d0 sp", ""),
        ("vmla.f32 s0, s1, s2", "vmla.f32", "", "s0 s1 s2", "s0"),
        ("vnmls.f32 s0, s1, s2", "vnmls.f32", "", "s0 s1 s2", "s0"),
        ("vmulle.f32 s0, s1, s2", "vmul.f32", "le", "s1 s2 flags", "s0"),
        ("vmov r0, r1, d0", "vmov", "", "d0", "r0 r1"),
        ("vmrs APSR_nzcv, fpscr", "vmrs", "", "fpscr", "flags"),
        ("vcmpe.f32 s0, #0.0", "vcmpe.f32", "", "s0", "fpscr"),
        ("vldrb.s16 q4, [r3], #8", "vldrb.s16", "", "r3", "q4 r3"),
        ("vldrbt.u8 q0, [r4]", "vldrb.u8", "", "r4", "q0"),
        ("vld20.8 {q0, q1}, [r0]", "vld20.8", "", "r0", "q0 q1"),
        ("vstrw.32 q0, [r0, #16]", "vstrw.32", "", "q0 r0", ""),
        ("vmladava.s8 r0, q0, q1", "vmladava.s8", "", "r0 q0 q1", "r0"),
        ("vmlavat.s8 r0, q0, q1", "vmlava.s8", "", "r0 q0 q1", "r0"),
        ("vmladav.s8 r0, q0, q1", "vmladav.s8", "", "q0 q1", "r0"),
        ("vrmlaldavha.s32 r0, r1, q0, q1", "vrmlaldavha.s32", "", "r0 r1 q0 q1", "r0 r1"),
        ("vaddva.s32 r0, q1", "vaddva.s32", "", "r0 q1", "r0"),
        ("vmlaldav.s16 r0, r1, q0, q1", "vmlaldav.s16", "", "q0 q1", "r0 r1"),
        ("vmovnt.i32 q0, q1", "vmovnt.i32", "", "q0 q1", "q0"),
        ("vnegt.s32 q0, q1", "vneg.s32", "", "q1", "q0"),
        ("letp lr, 100 <f>", "letp", "", "lr", "lr"),
    ],
)
def test_registers(text: str, name: str, condition: str, reads: str, writes: str) -> None:
    mnemonic, _, operands = text.partition(" ")
    found = decoded(Instruction(0, mnemonic, operands, ""), 4)
    assert (found.mnemonic, found.condition) == (name, condition)
    assert (set(found.reads), set(found.writes)) == (set(reads.split()), set(writes.split()))


@pytest.mark.parametrize(
    ("text", "transfers", "target"),
    [
        ("ldr r0, [r1, #0]", 1, None), ("ldrd r0, r1, [r2]", 2, None), ("ldmia r0, {r1, r2, r3}", 3, None),
        ("vpop {d8-d15}", 16, None), ("vldr d0, [r0]", 2, None), ("vldrw.u32 q0, [r0]", 4, None),
        ("bne.n 1f4 <f+0x10>", 0, 0x1F4), ("le lr, 38000064 <f>", 0, 0x38000064), ("cbnz r0, 10 <f>", 0, 0x10),
        ("bx lr", 0, None), ("add r0, r1", 0, None),
    ],
)  # fmt: skip
def test_transfers_and_targets(text: str, transfers: int, target: int | None) -> None:
    mnemonic, _, operands = text.partition(" ")
    found = decoded(Instruction(0, mnemonic, operands, ""), 2)
    assert (found.transfers, found.target) == (transfers, target)


def test_a_listing_without_code_has_no_functions() -> None:
    assert Disassembly("app.elf:     file format elf32-littlearm").functions == []


@pytest.mark.parametrize(("content", "code"), [(b"", "not-an-elf-image"), (b"\x7fELF", "image-damaged")])
def test_damaged_images_are_refused(tmp_path: Path, content: bytes, code: str) -> None:
    (tmp_path / "app.elf").write_bytes(content)
    with pytest.raises(InputFileError) as error:
        disassembled(tmp_path / "app.elf")
    assert (error.value.code, str(error.value.place)) == (code, str(tmp_path / "app.elf"))
