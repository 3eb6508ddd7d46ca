"""The pipelines of Arm's Cortex-M cores, a file each: costs of instructions without waits for memories.

    CORE_TIMINGS["cortex-m4"].costs(instructions, False)    the cost of each instruction of a basic block

**What is modelled.** Latency is divided in two. This package says how long a core takes for the instructions of a
block if every memory answers at once; that depends only on the code, so it is computed once per image. What a flash, a
cache or a second memory adds depends on the addresses of a run, so the plugin of QEMU adds it while the run goes on:
``TimedMemory`` has the wait states of an access, its width (one access of 16 bytes serves four words), whether the next
line is fetched ahead, and the cache it passes. Both parts are added up per operator.

**Data.** In: the instructions of one basic block with the registers that they read and write (``DecodedInstruction``),
and whether the block is a loop that branches to its own start. Out: a ``Cost`` for each instruction, in core cycles:
``cycles``, the ``taken`` cycles of a branch that is taken, what the core does in them, and whether a load ``overlaps``
with the load before it. Cycles are fractions, because a loop that issues two instructions at a time may take 4.5.

**Rules.** Three kinds of pipelines are described:

1. M0+ (``m0plus``) is a table: one instruction at a time, nothing overlaps.
2. M3 and M4 (``three_stages``) look at the neighbours of an instruction: a load after a load overlaps if its address
   does not depend on it, and a store hides if no access follows. Each has a table of its arithmetic.
3. M7, M33, M55 and M85 describe instructions as steps with operands, results and units, which ``issue`` issues in
   order, one or two in a cycle; ``operands`` says how they use their registers. A loop is issued until it repeats.

**Sources.** Every number has one in a comment or in ``sources``: a table of the core's reference manual or, if the
manual gives a range or nothing, a published measurement, or one of ``mlfbuild calibrate``. The middle of a range is
taken if operands decide. ``error`` states the per cent by which totals of kernels differed from measurements.

**Example.** The loop of a dot product, as GCC compiles it for one word per iteration:

    ldr r3, [r0], #4      M4: 2                          M3: 2
    ldr r2, [r1], #4      1, overlaps with the first     2, the M3 overlaps no load that updates its base
    mla r4, r3, r2, r4    1                              2
    subs r5, #1           1                              1
    bne                   1, and 1 to refill             1, and 1 to refill
                          7 cycles                       9 cycles

**What it does not do.** A core sees one block at a time: results that are not ready at the end of a block do not delay
the next one. Costs do not depend on values, so a division costs the same for all operands. Interrupts, DMA, other bus
masters and the MPU are not modelled. A core without an entry is refused (``core-not-modelled``), not approximated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.timing.cores.registry import CORE_TIMINGS, core_timing, modelled_error
else:
    __getattr__ = lazy_attributes(__name__)
