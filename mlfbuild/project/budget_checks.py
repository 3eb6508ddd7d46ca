"""Checks of budgets in a project file: images of this machine have none, and runs need a board or a microcontroller.

Like those in ``references``, they work on the plain values and skip values of the wrong type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mlfbuild.core import Mistake, listed
from mlfbuild.project.document import Document, mapping_in
from mlfbuild.targets import BOARDS, CPUS, Cpu

_INSTRUCTIONS = "instructions"
_MODELLED = ("cycles", "latency")


def check_targets_of_budgets(document: Document) -> None:
    """Add a problem to ``document`` for each budget that no target of its model or firmware can check.

    A budget of flash, RAM or stack needs a target that is not this machine, ``instructions`` a board or a modelled
    part, ``cycles`` and ``latency`` a microcontroller. A budget that some of the targets can check is accepted.
    """
    targets = dict(document.entries("targets"))
    entries = ((section, *entry) for section in ("models", "firmware") for entry in document.entries(section))
    # A budget is an error only if no target can check it: a model for a device and for this machine keeps its budget.
    for section, name, entry in entries:
        own, budget, path = _own_targets(entry, targets), mapping_in(entry, "budget"), (section, name, "budget")
        if budget and own and all(map(_is_this_machine, own.values())):
            document.add(path, _of_this_machine(own), at_key=True)
        elif budget.get(_INSTRUCTIONS) is not None and own and not any(map(_has_board, own.values())):
            document.add((*path, _INSTRUCTIONS), _mistake(own), at_key=True)
        for key in _MODELLED:
            if budget.get(key) is not None and own and not any(map(_is_modelled, own.values())):
                document.add((*path, key), _without_mcu(key, own), at_key=True)


def _own_targets(
    entry: Mapping[str, object], targets: Mapping[str, Mapping[str, object]]
) -> dict[str, Mapping[str, object]]:
    """Return the targets of a model or a firmware; none if one of the names does not exist."""
    wanted = entry.get("targets")
    names: Sequence[object] = wanted if isinstance(wanted, list) else list(targets)
    own = {name: targets[name] for name in names if isinstance(name, str) and name in targets}
    # Names that do not exist are reported by `references`.
    # All or none: with a wrong name left out, the rest could be refused for a reason that the correct name removes.
    return own if len(own) == len(names) else {}


def _is_this_machine(target: Mapping[str, object]) -> bool:
    return target.get("cpu") == "host" and target.get("toolchain") is None


def _of_this_machine(targets: Mapping[str, object]) -> Mistake:
    return Mistake(
        "budget-of-this-machine",
        reason=f"images for this machine ({listed(list(targets))}) have no budgets, and there is no other target",
        hint="add a target with another CPU, or remove the budget",
    )


def _has_board(target: Mapping[str, object]) -> bool:
    return target.get("board") is not None or _is_modelled(target)


def _is_modelled(target: Mapping[str, object]) -> bool:
    mcu = target.get("mcu")
    if mcu is None:
        return target.get("timing") is not None
    from mlfbuild.targets import MCUS  # a long table that most project files do not use

    return mcu in MCUS or target.get("timing") is not None


def _without_mcu(key: str, targets: Mapping[str, Mapping[str, object]]) -> Mistake:
    """Return why no target can model ``key``, and a microcontroller that one of the ``targets`` could have."""
    from mlfbuild.targets import MCUS  # a long table that most project files do not use

    fitting = (
        f"add mcu, such as `mcu: {mcu.name}`, to {name}, or remove {key}"
        for name, cpu in _cpus(targets)
        for mcu in MCUS.values()
        if CPUS[mcu.cpu].core == cpu.core
    )
    which, hint = _which(targets), next(fitting, f"add mcu or timing to a target, or remove {key}")
    if key == "cycles":
        reason = f"cycles are modelled for a microcontroller, and {which}"
        return Mistake("cycles-without-mcu", reason=reason, hint=hint)
    return Mistake("latency-without-mcu", reason=f"latency is modelled for a microcontroller, and {which}", hint=hint)


def _mistake(targets: Mapping[str, Mapping[str, object]]) -> Mistake:
    """Return why no target can count instructions, and a board that one of the ``targets`` could have."""
    fitting = (
        f"add board: {board.name} to {name}, or remove instructions"
        for name, cpu in _cpus(targets)
        for board in BOARDS.values()
        if board.takes(cpu)
    )
    reason = f"instructions are counted on a board, and {_which(targets)}"
    return Mistake("instructions-without-board", reason=reason, hint=next(fitting, "remove instructions"))


def _cpus(targets: Mapping[str, Mapping[str, object]]) -> Iterator[tuple[str, Cpu]]:
    """Yield the names of ``targets`` with their cores, without those whose core is not known."""
    yield from ((name, CPUS[cpu]) for name, target in targets.items() if (cpu := str(target.get("cpu"))) in CPUS)


def _which(targets: Mapping[str, object]) -> str:
    names = ", ".join(targets)
    return f"the target {names} has none" if len(targets) == 1 else f"none of the targets {names} has one"
