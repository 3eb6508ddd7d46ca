"""Changes between two reports, the largest first, in 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlfbuild.core import counted, listed, printable, text_table
from mlfbuild.report.document import compare
from mlfbuild.report.document.read import named_title
from mlfbuild.report.sizes.owners import FLASH_KINDS, RAM_KINDS
from mlfbuild.report.text.columns import WIDTH, fitted_table, shortened

_NAME = 35
_SHOWN = 8
_HEADER = ("", "before", "now", "change", "")
_MEMORIES = (("flash", "flash", FLASH_KINDS), ("ram", "RAM", RAM_KINDS))


def comparison_text(comparison: compare.ReportComparison, before: str, *, verbose: bool = False) -> str:
    """Return the comparison with the report ``before``: the largest changes, or all of them with ``verbose``.

    ``before`` is the name of the older report's file. Lines have at most 80 columns, and tables list the largest
    changes first.
    """
    parts = ["\n".join(_image(image, before, verbose=verbose)) for image in comparison.images]
    unpaired = [
        f"{printable(named_title(*names))}: not in {before}, so it is not compared" for names in comparison.only_now
    ]
    unpaired += [f"{printable(named_title(*names))}: only in {before}" for names in comparison.only_before]
    return "\n\n".join([*parts, "\n".join(unpaired)] if unpaired else parts)


def _image(image: compare.ImageChange, before: str, *, verbose: bool) -> Iterator[str]:
    title = printable(named_title(image.firmware, image.target))
    if image.unchanged:
        yield f"{title}: the same image as in {before}"
        return
    changed = [owner for owner in image.owners if owner.changed]
    yield f"{title}, compared with {before}"
    yield ""
    rows = [_row("the image, flash", image.flash), _row("the image, RAM", image.ram)]
    for owner in changed:
        rows += [("",) * len(_HEADER), *_owner(owner)]
    yield text_table(rows, header=_HEADER, align="lrrrr")
    # Unchanged owners are listed on one line, so that the table has only what differs.
    same = [printable(owner.name) for owner in image.owners if not owner.changed]
    if same:
        yield ""
        yield shortened(f"unchanged: {listed(same)}", WIDTH)
    # The stated error only matters beside modelled figures that changed.
    if image.error is not None and any(owner.cycles.more or owner.latency.more for owner in changed):
        yield ""
        yield f"cycles and ns: modelled, +-{image.error} %"
    yield from _repacked(image.owners)
    for owner in changed:
        yield from _operators(owner, verbose=verbose)
    for key, memory, _ in _MEMORIES:
        pieces = [piece for owner in image.owners for piece in owner.pieces if getattr(piece, key)]
        yield from _pieces(pieces, memory, verbose=verbose)


def _repacked(owners: Sequence[compare.OwnerChange]) -> Iterator[str]:
    for owner in owners:
        if owner.repacked:
            size = sum(piece.bytes.now or 0 for piece in owner.repacked)
            name = f"model {printable(owner.name)}" if owner.model else printable(owner.name)
            yield f"unchanged, repacked: {counted(len(owner.repacked), 'constant')} of {name} ({size:,} bytes)"


def _row(name: str, change: compare.Change) -> tuple[str, ...]:
    sizes = ("-" if size is None else f"{size:,}" for size in (change.before, change.now))
    return shortened(name, _NAME), *sizes, f"{change.more:+,}" if change.more else "same", _share(change)


def _share(change: compare.Change) -> str:
    if change.before is None or change.now is None:
        return "removed" if change.now is None else "new"
    # Growth from nothing has no share.
    share = 100 * change.more / change.before if change.before else 0
    return f"{share:+,.{0 if share >= 1000 else 1}f} %" if share else ""


def _owner(owner: compare.OwnerChange) -> Iterator[tuple[str, ...]]:
    name = f"model {printable(owner.name)}" if owner.model else printable(owner.name)
    for key, memory, kinds in _MEMORIES:
        change: compare.Change = getattr(owner, key)
        of_kinds = [(kind, owner.kinds[kind]) for kind in kinds if owner.model and owner.kinds[kind].more]
        if change.more or of_kinds:
            # The name is shortened, and never the words that say what the row counts.
            yield _row(f"{shortened(name, _NAME - 7)}, {memory}", change)
            yield from (_row(f"  {kind}", each) for kind, each in of_kinds)
    for title, change in owner.figures.items():
        if change.more:
            yield _row(f"{shortened(name, _NAME - len(title) - 2)}, {title}", change)


def _operators(owner: compare.OwnerChange, *, verbose: bool) -> Iterator[str]:
    if not owner.operators:
        return
    shown = owner.operators if verbose else owner.operators[:_SHOWN]
    yield ""
    yield f"model {printable(owner.name)}, operators that changed"
    modelled = any(operator.cycles.more for operator in shown)
    header = ("bytes", "MACs", "instructions", *(("cycles",) if modelled else ()), "")
    rows = [_operator(operator, modelled=modelled) for operator in shown]
    yield fitted_table(rows, header=header, align="r" * (len(header) - 1))
    yield from _rest(owner.operators, shown)


def _operator(operator: compare.OperatorChange, *, modelled: bool) -> tuple[str, ...]:
    figures = (operator.bytes, operator.macs, operator.instructions, *((operator.cycles,) if modelled else ()))
    state = _share(operator.bytes) if None in {operator.bytes.before, operator.bytes.now} else ""
    name = f"{operator.name} ({operator.operator}){state and f', {state}'}"
    return *(f"{change.more:+,}" if change.more else "" for change in figures), name


def _pieces(pieces: Sequence[compare.PieceChange], memory: str, *, verbose: bool) -> Iterator[str]:
    # Names decide between changes of equal size, so that the same reports give the same text.
    ordered = sorted(pieces, key=lambda piece: (-abs(piece.bytes.more), piece.name))
    if not ordered:
        return
    shown = ordered if verbose else ordered[:_SHOWN]
    yield ""
    yield f"{'all' if verbose else 'largest'} changes in {memory}"
    yield fitted_table([*map(_piece, shown)], header=("change", "before", "now", "", ""), align="rrr")
    yield from _rest(ordered, shown)


def _piece(piece: compare.PieceChange) -> tuple[str, ...]:
    before = "new" if piece.bytes.before is None else f"{piece.bytes.before:,}"
    now = "removed" if piece.bytes.now is None else f"{piece.bytes.now:,}"
    return f"{piece.bytes.more:+,}", before, now, piece.kind, piece.name


def _rest(rows: Sequence[object], shown: Sequence[object]) -> Iterator[str]:
    left = len(rows) - len(shown)
    if left:
        yield f"and {counted(left, 'other')} (-v lists all)"
