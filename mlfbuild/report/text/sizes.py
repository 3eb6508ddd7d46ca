"""The sizes of an image by owner, in 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mlfbuild.core import text_table
from mlfbuild.project import Budget
from mlfbuild.report.sizes.devices import parts_by_device
from mlfbuild.report.sizes.owners import FLASH_KINDS, RAM_KINDS, Owner, Sizes
from mlfbuild.report.text.columns import used_part

_SHOWN = 5
_ALL = 1 << 30


def sizes_text(sizes: Sizes, budgets: Mapping[str, Budget], whole: Budget, *, verbose: bool = False) -> str:
    """Return a table of owners and the largest symbols of each model; all symbols with ``verbose``.

    Budgets follow if there are any: ``budgets`` by model, and ``whole`` of the image. Models that link-time
    optimisation has mixed with other code have unknown sizes.
    """
    owners = (*sizes.models, *sizes.others)
    total = Owner("total", tuple(piece for owner in owners for piece in owner.pieces))
    header = ("", "flash", *FLASH_KINDS, "RAM")
    known = [_row(owner) for owner in (*owners, total) if owner.name not in sizes.mixed]
    unknown = [(name, *["unknown"] * (len(header) - 1)) for name in sizes.mixed]
    lines = [text_table([*unknown, *known], header=header, align="lrrrrr")]
    lines += [line for owner in sizes.models for line in _devices(owner)]
    lines += [line for owner in sizes.models for line in _largest(owner, _ALL if verbose else _SHOWN)]
    lines += list(_budget_lines(sizes, budgets, whole, total))
    return "\n".join(lines)


def _row(owner: Owner) -> tuple[str, ...]:
    numbers = (owner.flash, *(owner.of_kind(kind) for kind in FLASH_KINDS), owner.ram)
    return owner.name, *(f"{number:,}" for number in numbers)


def _devices(owner: Owner) -> Iterator[str]:
    """Yield the bytes of a model by device, if an NPU has some."""
    parts = parts_by_device(owner)
    if parts:
        yield ""
        yield f"model {owner.name}, by device (both: the workspace, in turns)"
        rows = [(part.device, f"{part.flash:,}", f"{part.ram:,}") for part in parts]
        yield text_table(rows, header=("", "flash", "RAM"), align="lrr", indent=2)


def _largest(owner: Owner, count: int) -> Iterator[str]:
    for title, ram in (("flash", False), ("RAM", True)):
        pieces = owner.largest(count, ram=ram)
        if pieces:
            yield ""
            yield f"model {owner.name}, {'all' if count == _ALL else 'largest'} in {title}"
            yield text_table([(f"{piece.size:,}", piece.kind, piece.name) for piece in pieces], align="r", indent=2)


def _budget_lines(sizes: Sizes, budgets: Mapping[str, Budget], whole: Budget, total: Owner) -> Iterator[str]:
    # An unknown size cannot be compared with a budget; it is an error elsewhere.
    models = [owner for owner in sizes.models if owner.name not in sizes.mixed]
    subjects = [(f"model {owner.name}", owner, budgets.get(owner.name, Budget())) for owner in models]
    rows = [
        (name, memory, size, limit)
        for name, owner, budget in (*subjects, ("the image", total, whole))
        for memory, size, limit in (("flash", owner.flash, budget.flash), ("RAM", owner.ram, budget.ram))
        if limit is not None
    ]
    if rows:
        yield ""
        yield "budgets"
    for name, memory, size, limit in rows:
        share = used_part(size, limit)
        yield f"  {name}: {size:,} of {limit:,} bytes of {memory} ({share})"


def kinds_of(owner: Owner) -> dict[str, dict[str, int]]:
    """Return the bytes of an owner by memory and kind, for JSON.

    For example, ``{"flash": {"code": 1024, ...}, "ram": {"arena": 2048, ...}}``; all kinds are present, and sizes are
    bytes.
    """
    return {
        "flash": {kind: owner.of_kind(kind) for kind in FLASH_KINDS},
        "ram": {kind: owner.of_kind(kind) for kind in RAM_KINDS},
    }
