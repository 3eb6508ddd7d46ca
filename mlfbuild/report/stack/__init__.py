"""How deep the stack of an image's functions gets at most, by its own instructions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    from mlfbuild.report.stack.image import measured_stacks as measured_stacks, stacks as stacks
    from mlfbuild.report.stack.text import (
        measured_in as measured_in,
        stack_json as stack_json,
        stack_lines as stack_lines,
        stacks_in as stacks_in,
    )
    from mlfbuild.report.stack.worst import StackDepth as StackDepth
else:
    __getattr__ = lazy_attributes(__name__)
