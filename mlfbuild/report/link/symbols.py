"""Find heap and stack of an image by the symbols that linker scripts define for start-up code and C libraries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlfbuild.report.sizes.image import Image
from mlfbuild.report.sizes.linker_map import Region

# No standard has these names. They are those of CMSIS, of vendors' scripts and of the systems in the comments.
_HEAP_STARTS = (
    "__HeapBase", "__heap_start__", "__heap_start", "_heap_start", "__heap_base", "_heap_begin", "_sheap",
    "_pvHeapStart", "__heap_base__",
)  # fmt: skip
_HEAP_ENDS = (
    "__HeapLimit", "__heap_end__", "__heap_end", "_heap_end", "__heap_limit", "_eheap", "_pvHeapLimit",
)  # fmt: skip
_IMPLIED_HEAPS = (
    ({"rt_system_heap_init", "rt_system_heap_init_generic"}, ("__bss_end", "__bss_end__", "_ebss")),  # RT-Thread
    ({"umm_initialize", "kumm_initialize", "mm_initialize"}, ("_ebss",)),  # NuttX; its idle stack comes first
    ({"_tx_initialize_kernel_enter"}, ("__RAM_segment_used_end__",)),  # ThreadX: memory for the application
    ({"_sbrk", "sbrk", "_sbrk_r"}, ("end", "_end", "__end__")),  # newlib
)
"""Functions of a system, and the symbols at which it begins to use memory, up to the end of the region."""
_STACK_LIMITS = (
    "__StackBottom", "__StackLimit", "__stack_limit", "__stack_limit__", "_sstack", "__process_stack_base__",
)  # fmt: skip
_STACK_TOPS = (
    "__StackTop", "__stack_top", "__stack_top__", "_estack", "_stack_top", "_vStackTop", "__stack_end__", "__stack",
    "_sp", "__process_stack_end__",
)  # fmt: skip
_STACK_SIZES = (
    "_Min_Stack_Size", "__stack_size__", "__stack_size", "_stack_size", "_system_stack_size", "__STACK_SIZE",
    "__StackSize", "_StackSize", "Stack_Size", "STACK_SIZE", "MLF_STACK_SIZE",
    "__process_stack_size__",  # of main in ChibiOS; interrupts have the main stack
)  # fmt: skip
_LARGEST_STACK = 1 << 24
"""Symbols further apart do not belong together."""
_TASKS = (
    "xTaskCreate", "xTaskCreateStatic", "rt_thread_init", "rt_thread_create", "_tx_thread_create", "osThreadNew",
    "nxtask_init", "z_setup_new_thread", "OSTaskCreate", "chThdCreate", "chThdCreateStatic", "chThdCreateSuspended",
    "chThdSpawnRunning", "chThdSpawnSuspended",
)  # fmt: skip
"""Functions that create a task with a separate stack."""


@dataclass(frozen=True)
class AddressRange:
    """A part of the memory."""

    start: int
    end: int
    """The first address after it."""
    symbol: str
    """The symbol that defines its start, or its size."""

    @property
    def size(self) -> int:
        """Bytes."""
        return self.end - self.start


def heap_of(image: Image, regions: Sequence[Region]) -> AddressRange | None:
    """Return the memory that the heap of ``image`` may grow into; ``None`` without a heap, or if it is unknown.

    It ends at a symbol, at the stack, or at the end of its memory region, whichever comes first.
    """
    functions = {symbol.name for symbol in image.symbols if symbol.function}
    names = [*_HEAP_STARTS, *(name for users, starts in _IMPLIED_HEAPS if users & functions for name in starts)]
    # Explicit symbols before implied ones: a script that names its heap knows best.
    start = _first(image.labels, names)
    if start is None:
        return None
    begin, stack = image.labels[start], stack_of(image)
    ends = [image.labels[name] for name in _HEAP_ENDS if name in image.labels]
    ends += [region.end for region in regions if region.start <= begin < region.end]
    ends += [stack.start] if stack is not None else []
    end = min((end for end in ends if end > begin), default=None)
    return None if end is None else AddressRange(begin, end, start)


def stack_of(image: Image) -> AddressRange | None:
    """Return the stack that the linker script reserves for ``main``; ``None`` if no symbols define it."""
    labels = image.labels
    top, limit, size = (_first(labels, names) for names in (_STACK_TOPS, _STACK_LIMITS, _STACK_SIZES))
    if top is None:
        return None
    if limit is not None and 0 < labels[top] - labels[limit] <= _LARGEST_STACK:
        return AddressRange(labels[limit], labels[top], size or limit)
    if size is not None and 0 < labels[size] <= min(_LARGEST_STACK, labels[top]):
        return AddressRange(labels[top] - labels[size], labels[top], size)
    return None


def task_function(image: Image) -> str | None:
    """Return the function that creates tasks with separate stacks; ``None`` without an RTOS."""
    functions = {symbol.name for symbol in image.symbols if symbol.function}
    return next((name for name in _TASKS if name in functions), None)


def _first(labels: Mapping[str, int], names: Sequence[str]) -> str | None:
    return next((name for name in names if name in labels), None)
