"""The code of an image with the effects of its instructions on the stack."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mlfbuild.report.stack import arm, riscv
from mlfbuild.report.stack.steps import Decoder, Words
from mlfbuild.timing import Disassembly, disassembled

_DECODERS: dict[str, Decoder] = {"EM_ARM": arm.decode, "EM_RISCV": riscv.decode}


@dataclass(frozen=True)
class ImageCode:
    """The code of an image."""

    listing: Disassembly
    decode: Decoder
    words: Words
    thumb: bool
    """Whether pointers to functions are odd."""


def read_program(path: Path) -> ImageCode | None:
    """Return the code of the image ``path``; ``None`` if it is not for 32-bit Arm or RISC-V.

    Raises as ``disassembled``.

    ``ImageCode.decode`` is the decoder for the machine in the ELF header.
    """
    code = disassembled(path)
    if code is None:
        return None
    return ImageCode(code.listing, _DECODERS[code.machine], code.word, thumb=code.machine == "EM_ARM")
