"""The multiply-accumulates that one instruction of a CPU does, and the lower bound of instructions that follows.

The instructions are those that the architectures have for this purpose:

- MVE (Armv8-M Architecture Reference Manual, Arm DDI 0553): VMLADAVA adds the products of all lanes of two vectors of
  128 bits, 16 of 8 bits, 8 of 16 and 4 of 32; VFMA has 4 lanes of float32 and 8 of float16.
- Neon (Armv7-A and Armv7-R manual, DDI 0406): VMLAL.S8 has 8 lanes, VMLAL.S16 and VMLA of 32 bits have 4.
- DSP (Armv7-M manual, DDI 0403, and DDI 0553): SMLAD adds two products of 16 bits, to which 8 bits are
  extended first.
- The other CPUs with Armv7-M or Armv8-M Mainline have MLA, and VFMA if they have an FPU: one product each, or two of
  8 bits, if one factor is a word that holds two numbers 16 bits apart.
- Armv6-M, Armv8-M Baseline and RISC-V have none: a multiplication and an addition.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from mlfbuild.targets.types import Cpu

_MVE = {"int8": 16, "uint8": 16, "int16": 8, "int32": 4, "float16": 8, "float32": 4}
_NEON = {"int8": 8, "uint8": 8, "int16": 4, "int32": 4, "float32": 4}
_DSP = {"int8": 2, "uint8": 2, "int16": 2, "int32": 1}
# Two of int8, because a word can hold two numbers 16 bits apart.
_SCALAR = {"int8": 2, "uint8": 2, "int16": 1, "int32": 1}
_NO_MLA = frozenset({"armv6s-m", "armv8-m.base", "rv32imc"})


def macs_an_instruction(cpu: Cpu, dtype: str) -> Fraction | None:
    """Return the multiply-accumulates of ``dtype`` that one instruction of ``cpu`` does; 1/2 if one takes two.

    ``None`` if library functions do them (floats without an FPU, integers of 64 bits), and for this machine.
    """
    if cpu.architecture == "host":
        return None
    if dtype in _SCALAR and cpu.architecture in _NO_MLA:
        # A multiplication and an addition for each.
        return Fraction(_SCALAR[dtype], 2)
    # The widest instruction of all extensions: this is a lower bound, whatever kernel is used.
    tables: Mapping[str, Mapping[str, int]] = {"mve": _MVE, "neon": _NEON, "dsp": _DSP, "fpu": {"float32": 1}}
    wider = [lanes.get(dtype, 0) for feature, lanes in tables.items() if feature in cpu.features]
    found = max([_SCALAR.get(dtype, 0), *wider])
    return Fraction(found) if found else None


def fewest_instructions(cpu: Cpu, dtype: str, macs: int) -> int | None:
    """Return the minimum number of instructions of ``cpu`` for ``macs`` multiply-accumulates of ``dtype``.

    Loads, stores, loops, rescaling and all other code are not counted. ``None`` as for ``macs_an_instruction``.
    """
    at_once = macs_an_instruction(cpu, dtype)
    return 0 if macs == 0 else None if at_once is None else math.ceil(macs / at_once)
