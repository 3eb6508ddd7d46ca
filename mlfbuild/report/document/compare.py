"""Changes between two reports: images, owners, functions and constants, operators.

Images are paired by the names of firmware and target, owners and symbols by name, constants of models by the tensor
that they are made of (``pairing``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from typing import Any, TypeVar

from mlfbuild.report.document.pairing import Unit, UnitPair, paired_operators, paired_units
from mlfbuild.report.document.read import Report, title_of
from mlfbuild.report.operators.operator_runs import total
from mlfbuild.report.sizes.owners import FLASH_KINDS, RAM_KINDS

MEMORIES = ("flash", "ram")
_T = TypeVar("_T")


@dataclass(frozen=True)
class Change:
    """A number in both reports; ``None`` if a report does not have it."""

    before: int | None
    now: int | None

    @property
    def more(self) -> int:
        """The growth; a missing number counts as 0."""
        return (self.now or 0) - (self.before or 0)


@dataclass(frozen=True)
class PieceChange:
    """A function, a constant or a variable; those with the same name or tensor, and the same kind, are added up."""

    name: str
    """That of the largest symbol."""
    kind: str
    flash: bool
    ram: bool
    tensor: str
    """The tensor or operator of the model that it is made of; empty if unknown."""
    bytes: Change


@dataclass(frozen=True)
class OperatorChange:
    """An operator of a model's network, or several that are computed together in one of the reports."""

    module: str
    name: str
    operator: str
    bytes: Change
    """Code, weights and tables together."""
    macs: Change
    """``None`` if unknown."""
    instructions: Change
    """``None`` if not counted."""
    cycles: Change
    """``None`` if not modelled."""


@dataclass(frozen=True)
class OwnerChange:
    """A model, a library or another part that takes bytes of the image."""

    name: str
    model: bool
    flash: Change
    ram: Change
    kinds: Mapping[str, Change]
    """The change of each of ``FLASH_KINDS`` and ``RAM_KINDS``."""
    pieces: tuple[PieceChange, ...]
    """Changed ones, largest change first."""
    repacked: tuple[PieceChange, ...]
    """Constants whose part of the model is unchanged, at another place or in another layout of the same size."""
    operators: tuple[OperatorChange, ...]
    """Changed ones, largest change first; empty unless both reports have the model's networks."""
    instructions: Change
    """Instructions of one run of a model; ``None`` in both reports unless both have counted them."""
    stack: Change
    """Worst-case stack of a model in bytes; ``None`` in both reports unless both know it."""
    cycles: Change
    """Modelled cycles of one run of a model; ``None`` in both reports unless both have them."""
    latency: Change
    """Modelled nanoseconds of one run of a model; ``None`` in both reports unless both have them."""

    @property
    def figures(self) -> Mapping[str, Change]:
        """The numbers besides sizes, by their names for people."""
        modelled = {"modelled cycles": self.cycles, "modelled ns": self.latency}
        return {"stack": self.stack, "instructions": self.instructions, **modelled}

    @property
    def changed(self) -> bool:
        """Whether a number changed."""
        return self.weight > 0 or any(each.more for each in self.figures.values())

    @property
    def weight(self) -> int:
        """Changed bytes, to sort by."""
        return abs(self.flash.more) + abs(self.ram.more) + sum(abs(change.more) for change in self.kinds.values())


@dataclass(frozen=True)
class ImageChange:
    """An image in both reports."""

    firmware: str
    target: str | None
    same: bool
    """Whether the files are identical."""
    flash: Change
    ram: Change
    owners: tuple[OwnerChange, ...]
    """The owners of both, largest change first; unchanged ones in the order of the report."""
    error: int | None
    """The largest stated error of modelled cycles, in per cent; ``None`` if a report has none."""

    @property
    def unchanged(self) -> bool:
        """Whether files and figures are equal; cycles of the same image differ if the clock does."""
        return self.same and not any(owner.changed for owner in self.owners)


@dataclass(frozen=True)
class ReportComparison:
    """The changes between two reports."""

    images: tuple[ImageChange, ...]
    """Images in both reports, in the order of the new one."""
    only_before: tuple[tuple[str, str | None], ...]
    """Firmware and target of images that only the old report has."""
    only_now: tuple[tuple[str, str | None], ...]


def compare_reports(now: Report, before: Report) -> ReportComparison:
    """Return the changes from ``before`` to ``now``.

    Both fit the schema, as ``read_report`` has checked. Images are paired by firmware and target; those that only one
    report has are listed and not compared::

        comparison = compare_reports(read_report(Path("new.json")), read_report(Path("old.json")))
        comparison.images[0].flash.more   # bytes of flash that the first image has grown by
    """
    old = {title_of(image): image for image in before["images"]}
    new = {title_of(image): image for image in now["images"]}
    return ReportComparison(
        tuple(_image(image, old[title]) for title, image in new.items() if title in old),
        tuple(_names(image) for title, image in old.items() if title not in new),
        tuple(_names(image) for title, image in new.items() if title not in old),
    )


def comparison_json(comparison: ReportComparison) -> dict[str, Any]:
    """Return the comparison as plain JSON values, as ``compared`` in ``report.schema.json`` describes them."""
    return {
        "images": [{**_plain(image), **_named(image.firmware, image.target)} for image in comparison.images],
        "only_before": [_named(*names) for names in comparison.only_before],
        "only_now": [_named(*names) for names in comparison.only_now],
    }


def _plain(value: Any) -> Any:
    if is_dataclass(value) or isinstance(value, Mapping):
        members = value if isinstance(value, Mapping) else vars(value)
        # Images without a project have no target.
        return {key: _plain(each) for key, each in members.items() if key != "target" or each}
    return [_plain(each) for each in value] if isinstance(value, tuple) else value


def _named(firmware: str, target: str | None) -> dict[str, str]:
    return {"firmware": firmware, **({"target": target} if target else {})}


def _names(image: Report) -> tuple[str, str | None]:
    return image["firmware"], image.get("target")


def _image(now: Report, before: Report) -> ImageChange:
    owners = [
        _owner(name, new, old, model=group == "models")
        for group in ("models", "others")
        for name, new, old in _paired(now[group], before[group], lambda owner: str(owner["name"]))
    ]
    errors = [_error(image) for image in (now, before)]
    return ImageChange(
        *_names(now),
        now["sha256"] == before["sha256"],
        Change(before["flash"], now["flash"]),
        Change(before["ram"], now["ram"]),
        # The sort is stable, so owners without a change stay in the order of the report.
        tuple(sorted(owners, key=lambda owner: -owner.weight)),
        None if None in errors else max(error or 0 for error in errors),
    )


def _error(image: Report) -> int | None:
    profiles = [network.get("profile") or {} for model in image["models"] for network in model.get("networks", ())]
    return max((profile["modelled"]["error"] for profile in profiles if "modelled" in profile), default=None)


def _paired(
    now: Sequence[Report], before: Sequence[Report], key: Callable[[Report], _T]
) -> Iterator[tuple[_T, Report | None, Report | None]]:
    """Yield each key with the items of both sides, in the order of ``now``; the n-th items of a key are paired."""
    old: dict[_T, list[Report]] = defaultdict(list)
    for item in before:
        old[key(item)].append(item)
    for item in now:
        # Names may occur twice, such as functions of two files; the n-th belongs to the n-th.
        yield key(item), item, old[key(item)].pop(0) if old[key(item)] else None
    for name, left in old.items():
        yield from ((name, None, item) for item in left)


def _owner(name: str, now: Report | None, before: Report | None, *, model: bool) -> OwnerChange:
    def change(*path: str) -> Change:
        return Change(_figure(before, path), _figure(now, path))

    kinds = {
        kind: change("kinds", memory, kind)
        for memory, of in zip(MEMORIES, (FLASH_KINDS, RAM_KINDS), strict=True)
        for kind in of
    }
    return OwnerChange(
        name,
        model,
        change("flash"),
        change("ram"),
        kinds,
        *_pieces(now, before),
        _operators(now, before),
        _where_known(now, before, lambda owner: run_figure(owner, "instructions")),
        _where_known(now, before, lambda owner: (owner.get("stack") or {}).get("worst_case")),
        _where_known(now, before, lambda owner: run_figure(owner, "cycles")),
        _where_known(now, before, lambda owner: run_figure(owner, "latency")),
    )


def _where_known(now: Report | None, before: Report | None, figure: Callable[[Report], int | None]) -> Change:
    """Return a number of both sides; ``None`` for both if only one side has it."""
    old, new = (None if owner is None else figure(owner) for owner in (before, now))
    # A report without runs must not look as if all instructions were saved.
    known = (before is None or old is not None) and (now is None or new is not None)
    return Change(old, new) if known else Change(None, None)


def run_figure(owner: Report, key: str) -> int | None:
    """Return the ``instructions``, or the modelled ``cycles`` or ``latency``, of one run of all networks of a model.

    ``None`` if one of the networks has none: the sum of some networks would look like that of all.
    """
    profiles = [network.get("profile") or {} for network in owner.get("networks", ())]
    figures = [(profile if key == "instructions" else profile.get("modelled", {})).get(key) for profile in profiles]
    return total(figures) if figures else None


def _figure(owner: Report | None, path: Iterable[str]) -> int | None:
    found: Any = owner
    for key in path if owner else ():
        found = found[key]
    return None if owner is None else int(found)


def _pieces(now: Report | None, before: Report | None) -> tuple[tuple[PieceChange, ...], tuple[PieceChange, ...]]:
    """Return the pieces whose size changed, and those that are repacked in the same size."""
    pairs = [pair for pair in paired_units(now, before) if _size(pair.now) != _size(pair.before) or pair.repacked]
    changes = [_piece(pair) for pair in pairs]
    changes.sort(key=lambda piece: (-abs(piece.bytes.more), piece.name, piece.kind))
    return tuple(each for each in changes if each.bytes.before != each.bytes.now), tuple(
        each for each in changes if each.bytes.before == each.bytes.now
    )


def _piece(pair: UnitPair) -> PieceChange:
    unit = next(each for each in (pair.now, pair.before) if each is not None)
    change = Change(_size(pair.before), _size(pair.now))
    return PieceChange(unit.name, unit.kind, unit.flash, unit.ram, unit.tensor, change)


def _size(unit: Unit | None) -> int | None:
    return None if unit is None else unit.size


def _operators(now: Report | None, before: Report | None) -> tuple[OperatorChange, ...]:
    if now is None or before is None or "networks" not in now or "networks" not in before:
        return ()
    changes = (
        _operator(module, *group)
        for module, new, old in _paired(now["networks"], before["networks"], lambda network: str(network["module"]))
        for group in paired_operators(new["operators"] if new else (), old["operators"] if old else ())
    )
    changed = [each for each in changes if any(change.before != change.now for change in _figures(each))]
    return tuple(sorted(changed, key=lambda each: [-abs(change.more) for change in _figures(each)]))


def _figures(operator: OperatorChange) -> tuple[Change, ...]:
    return operator.bytes, operator.cycles, operator.instructions, operator.macs


def _operator(module: str, now: Sequence[Report], before: Sequence[Report]) -> OperatorChange:
    def figure(key: str) -> Change:
        # As for owners: a number that only some have must not look like a change.
        known = all(operator.get(key) is not None for operator in (*now, *before))
        return Change(_sum(before, key), _sum(now, key)) if known else Change(None, None)

    named = min((side for side in (now, before) if side), key=len)  # the names of fused operators are joined already
    return OperatorChange(
        module,
        " + ".join(str(operator["name"]) for operator in named),
        " + ".join(str(operator["operator"]) for operator in named),
        Change(_sum(before, *FLASH_KINDS), _sum(now, *FLASH_KINDS)),
        figure("macs"),
        figure("instructions"),
        figure("cycles"),
    )


def _sum(operators: Sequence[Report], *keys: str) -> int | None:
    return sum(int(operator[key]) for operator in operators for key in keys) if operators else None
