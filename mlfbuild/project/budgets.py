"""Checks of budgets in a project file: instructions are counted on a board, so there has to be one.

As in ``references``, they work on the plain values and skip what is of the wrong kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mlfbuild.project.document import Document
from mlfbuild.targets import BOARDS, CPUS

_INSTRUCTIONS = "instructions"


def check_instruction_budgets(document: Document) -> None:
    """Add a problem to ``document`` for each budget of instructions that no target could be held against."""
    targets = dict(_entries(document.data, "targets"))
    for section in ("models", "firmware"):
        for name, entry in _entries(document.data, section):
            own = _own_targets(entry, targets)
            if _mapping(entry, "budget").get(_INSTRUCTIONS) is not None and own and not _any_board(own):
                document.add((section, name, "budget", _INSTRUCTIONS), _reason(own), at_key=True)


def _mapping(data: object, key: str) -> Mapping[str, object]:
    value = data.get(key) if isinstance(data, dict) else None
    return value if isinstance(value, dict) else {}


def _entries(data: object, section: str) -> Iterator[tuple[str, Mapping[str, object]]]:
    return ((name, entry) for name, entry in _mapping(data, section).items() if isinstance(entry, dict))


def _own_targets(
    entry: Mapping[str, object], targets: Mapping[str, Mapping[str, object]]
) -> dict[str, Mapping[str, object]]:
    """Return the targets of a model or a firmware; none where one of the names leads nowhere."""
    wanted = entry.get("targets")
    names: Sequence[object] = wanted if isinstance(wanted, list) else list(targets)
    own = {name: targets[name] for name in names if isinstance(name, str) and name in targets}
    return own if len(own) == len(names) else {}


def _any_board(targets: Mapping[str, Mapping[str, object]]) -> bool:
    return any(target.get("board") is not None for target in targets.values())


def _reason(targets: Mapping[str, Mapping[str, object]]) -> str:
    """Return why nothing counts, and a board that one of the ``targets`` could have."""
    fitting = (
        f"give {name} one (board: {board.name}), or leave this out"
        for name, target in targets.items()
        for board in BOARDS.values()
        if isinstance(cpu := target.get("cpu"), str) and cpu in CPUS and board.takes(CPUS[cpu])
    )
    advice = next(fitting, "QEMU emulates none with such a CPU: leave this out")
    return f"instructions are counted on a board, and none of its targets ({', '.join(targets)}) has one; {advice}"
