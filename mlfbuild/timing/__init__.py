"""Model the cycles of an image on a named microcontroller, from a run on an emulated board.

Data goes through these modules:

- ``objdump`` disassembles an image once (``LinkedCode``), ``listing`` parses the text and its operands,
  ``decode`` finds the registers and the target of each instruction (``DecodedInstruction``), ``description`` splits
  functions into basic blocks and returns the cost of each instruction (``instruction_costs``).
- ``cores`` has a ``CoreTiming`` for each core: a function from the instructions of a block to a ``Cost`` for each, as
  if no memory had wait states.
- ``description`` writes these costs and the memories and caches of an ``Mcu`` as lines for the plugin of QEMU
  (``verify/emulator/counter.c``), which adds up the costs of executed blocks and simulates the memories.
- ``costs`` also converts the plugin's numbers to cycles by kind (``CycleCount``).

Example: the cycles of a function of an image, with addresses from its symbols::

    mcu = MCUS["stm32l4r5"].at(80 * MHZ)
    counting = Counting(image, [(main, main_end, OUTSIDE), (run, run_end, REST), (conv, conv_end, 1)], folder,
                        board=BOARDS["mps2-an386"], mcu=mcu)      # from mlfbuild.verify.emulator; describes the image
    run_elf(image, BOARDS["mps2-an386"], plugin=counting.plugin, timeout=60)
    call, rest = counting.calls()
    call.cycles                 # CycleCount(arithmetic=5130, memory=3075, branches=520, waiting=412)
    modelled_error(mcu)         # the stated error in per cent

The room does not run images and measures nothing. It models Arm's Cortex-M cores in ``CORE_TIMINGS``, without
interrupts, DMA, other bus masters, or costs that depend on the values of operands. ``mlfbuild.targets`` has the table
of microcontrollers, and ``docs/latency.md`` describes the model and its assumptions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.timing.cores import CORE_TIMINGS, core_timing, modelled_error
    from mlfbuild.timing.costs import (
        BlockCosts, CoreTiming, Cost, CycleCount, DecodedInstruction, WorkKind, cycle_count,
    )
    from mlfbuild.timing.description import instruction_costs, regions_of_part, timing_description
    from mlfbuild.timing.listing import (
        REGISTER_ALIASES, Disassembly, Instruction, ListedFunction, listed_registers, operand_parts,
    )
    from mlfbuild.timing.objdump import LinkedCode, disassembled, opened_image
else:
    __getattr__ = lazy_attributes(__name__)
