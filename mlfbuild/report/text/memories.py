"""The use of a target's memories by an image, in 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mlfbuild.core import text_table
from mlfbuild.project import Budget
from mlfbuild.report.sizes.memories import MemoryUse
from mlfbuild.report.text.columns import used_part


def memories_text(uses: Sequence[MemoryUse], budgets: Mapping[str, Budget]) -> str:
    """Return a table of memories and the models in them, then the ``budgets`` of memories by model.

    There must be at least one memory. The budget of an empty name is that of the whole image.
    """
    rows = [row for use in uses for row in _rows(use)]
    lines = [text_table(rows, header=("memory", "bytes", "", "of"), align="lrlr")]
    lines += [f"  {use.name}: {use.problem}" for use in uses if use.problem]
    known = {use.name: use for use in uses if not use.problem}
    limits = [
        (f"model {model}" if model else "the image", memory, known[memory].bytes_of(model), limit)
        for model, budget in budgets.items()
        for memory, limit in budget.memories.items()
        if memory in known
    ]
    if limits:
        lines += ["", "budgets of memories"]
    lines += [
        f"  {title}: {size:,} of {limit:,} bytes of {memory} ({used_part(size, limit)})"
        for title, memory, size, limit in limits
    ]
    return "\n".join(lines)


def _rows(use: MemoryUse) -> Iterator[tuple[str, str, str, str]]:
    if use.problem:
        yield use.name, "unknown", "", ""
        return
    yield use.name, f"{use.used:,}", "", f"{use.size:,} ({used_part(use.used, use.size)})" if use.size else ""
    for model, size in use.models.items():
        yield "", f"{size:,}", f"model {model}", ""


def memory_json(use: MemoryUse) -> dict[str, Any]:
    """Return a memory for the report's JSON; ``used`` and ``models`` are missing if its use is not known."""
    head = {"name": use.name, "size": use.size}
    return {**head, "problem": use.problem} if use.problem else {**head, "used": use.used, "models": dict(use.models)}
