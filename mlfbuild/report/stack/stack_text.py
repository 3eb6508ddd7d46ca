"""The stack of an image's models, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mlfbuild.core import printable, text_table
from mlfbuild.report.stack.deepest_stack import StackDepth, StackFrame
from mlfbuild.report.stack.image import MAIN, Stacks


def stack_lines(
    stacks: Stacks, limits: Mapping[str, int], measured: Mapping[str, int], *, verbose: bool = False
) -> Iterator[str]:
    """Yield lines with the worst-case stack and the call chain of each model, and with ``verbose`` of ``main``.

    ``limits`` has budgets, ``measured`` the bytes that a run took, both by model.

    Sizes are in bytes. A model whose stack is unknown gets the reason instead of a chain.
    """
    for name, depth in stacks.by_name.items():
        title = f"model {name}, stack" if name else f"{MAIN}, stack"
        ran = f", {measured[name]:,} in a run" if name in measured else ""
        if depth.size is None:
            yield from (f"{title}: unknown{ran}", f"  {depth.reason}")
        else:
            yield f"{title}: {depth.size:,} bytes in the worst case{ran}{_of(depth.size, limits.get(name))}"
            chain = depth.path if name or verbose else ()
            # A frame of 0 bytes adds nothing: a tail call reuses the memory of its caller.
            rows = [(f"{part.size:,}", part.function) for part in chain if part.size]
            if rows:
                yield text_table(rows, align="r", indent=2)
        if name:
            yield ""


def stacks_in(image: Mapping[str, Any]) -> Stacks | None:
    """Return the stacks of an image from the JSON form of a report; ``None`` if it has none."""
    if "stack" not in image:
        return None
    # Reports may come from elsewhere, so names lose their control characters before they are printed.
    models = {printable(model["name"]): _depth(model["stack"]) for model in image["models"] if "stack" in model}
    return Stacks(models, _depth(image["stack"]))


def measured_in(image: Mapping[str, Any]) -> dict[str, int]:
    """Return the bytes of stack that runs took, by model, from the JSON form of a report."""
    taken = {printable(model["name"]): model.get("stack", {}).get("measured") for model in image["models"]}
    return {name: size for name, size in taken.items() if size is not None}


def _depth(stack: Mapping[str, Any]) -> StackDepth:
    path = (StackFrame(printable(name), size) for name, size in zip(stack["path"], stack["frames"], strict=False))
    return StackDepth(stack["worst_case"], tuple(path), printable(stack["reason"]))


def _of(size: int, limit: int | None) -> str:
    if limit is None:
        return ""
    # Rounded up, so that a stack one byte above its budget does not read 100 %.
    return f" ({-(-100 * size // limit)} % of its budget of {limit:,})" if limit else " (over its budget of 0)"


def stack_json(depth: StackDepth, measured: int | None = None) -> dict[str, Any]:
    """Return a stack as plain JSON values; ``measured`` are the bytes that a run took.

    ``stacks_in`` reads this form back. ``worst_case`` is null if the stack is unknown; ``path`` and ``frames``, in
    bytes, have the same length.
    """
    return {
        "worst_case": depth.size,
        "reason": depth.reason,
        "path": [part.function for part in depth.path],
        "frames": [part.size for part in depth.path],
        "measured": measured,
    }
