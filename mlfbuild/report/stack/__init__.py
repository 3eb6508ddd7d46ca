"""Worst-case stack of an image's functions, from its instructions.

objdump lists the instructions; ``arm`` and ``riscv`` decode their effect on the stack pointer; ``function`` follows all
paths through one function, and ``deepest_stack`` the calls between functions, with ``pointers`` for calls through
pointers. The result is an upper bound, or unknown with a reason: recursion, alloca, or a pointer to an unknown
function.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.report.stack.deepest_stack import StackDepth
    from mlfbuild.report.stack.image import measured_in, measured_stacks, stack_json, stack_lines, stacks, stacks_in
else:
    __getattr__ = lazy_attributes(__name__)
