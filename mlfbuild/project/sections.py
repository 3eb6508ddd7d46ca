"""Checks of the sections in a project file: what each holds, and the memory regions that targets have them in.

As in ``references``, they work on the plain values and skip what is of the wrong kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mlfbuild.project.document import Document
from mlfbuild.project.placement import (
    CONSTANT_CLASSES,
    MEMORY_CLASSES,
    PARAMS,
    SECTION_NAME,
    is_collected,
    section_problem,
    symbol_stem,
)
from mlfbuild.project.problems import KeyPath, dotted, unknown
from mlfbuild.targets import BOARDS

_PARAMS_BINARY = "params-binary"

Use = tuple[KeyPath, str]
"""Where a section is named, and which."""


def check_sections(document: Document) -> None:
    """Add every mistake about sections to the problems of ``document``."""
    models = _mapping(document.data, "models")
    _check_kinds(document, models)
    _check_params_binaries(document, models)
    for name, target in _mapping(document.data, "targets").items():
        if isinstance(target, dict) and isinstance(target.get("regions"), dict):
            built = {key: model for key, model in models.items() if _is_built(model, name)}
            _check_regions(document, name, target, built)


def _check_kinds(document: Document, models: Mapping[str, object]) -> None:
    """Check that every section can hold what it is to hold, in the whole project either constants or memory."""
    first: dict[str, tuple[bool, KeyPath]] = {}
    for path, section in _uses(models):
        memory = path[3] in MEMORY_CLASSES
        reason = section_problem(section, memory=memory)
        known, place = first.setdefault(section, (memory, path))
        if not SECTION_NAME.fullmatch(section):
            continue  # told already
        if reason is not None:
            document.add(path, reason)
        elif known != memory:
            kinds = "constants" if known else "memory", "memory" if known else "constants"
            document.add(path, f"{section} cannot hold {kinds[0]}: it holds {kinds[1]} of {dotted(place)}")


def _check_params_binaries(document: Document, models: Mapping[str, object]) -> None:
    constants = dict.fromkeys(section for path, section in _uses(models) if path[3] not in MEMORY_CLASSES)
    for name, firmware in _mapping(document.data, "firmware").items():
        section = firmware.get(_PARAMS_BINARY) if isinstance(firmware, dict) else None
        if not isinstance(section, str) or not SECTION_NAME.fullmatch(section) or section in constants:
            continue
        nowhere = f"no model places constants in {section}; give one placement: {{params: {section}}}"
        reason = unknown("section", section, constants) if constants else nowhere
        document.add(("firmware", name, _PARAMS_BINARY), reason)


def _check_regions(document: Document, name: str, target: Mapping[str, object], models: Mapping[str, object]) -> None:
    board = BOARDS.get(str(target.get("board")))
    used = dict.fromkeys(section for _, section in _uses(models))
    symbols: dict[str, str] = {}
    if target.get("cpu") == "host":
        reason = "this machine has no linker script with regions; leave it out"
        document.add(("targets", name, "regions"), reason, at_key=True)
    for section, region in _mapping(target, "regions").items():
        path = ("targets", name, "regions", section)
        if not SECTION_NAME.fullmatch(section):
            continue  # told already
        other = symbols.setdefault(symbol_stem(section), section)
        if is_collected(section):
            reason = f"linker scripts have it already, or a pattern for it; choose another name, as .mlf{section}"
            document.add(path, reason, at_key=True)
        elif section not in used:
            reason = unknown("section", section, used) if used else "no model of the target places anything there"
            document.add(path, reason, at_key=True)
        elif other != section:
            document.add(path, f"its symbols have the names of those of {other}; choose another name", at_key=True)
        elif board is not None and isinstance(region, str) and region not in board.regions:
            document.add(path, f"{board.name}: {unknown('memory region', region, board.regions)}")
        elif board is not None and region == board.ram.name:
            document.add(
                path,
                f"{board.name} has stack and heap in {region}; take another region, or no region and .bss{section}",
            )


def _uses(models: Mapping[str, object]) -> Iterator[Use]:
    """Yield every section that one of ``models`` names."""
    for name, model in models.items():
        placement = _mapping(model, "placement")
        path = ("models", name, "placement")
        params = placement.get(PARAMS)
        named = _mapping(placement, PARAMS)
        found = [
            ((*path, PARAMS), params),
            *(((*path, PARAMS, kind), named.get(kind)) for kind in CONSTANT_CLASSES),
            *(((*path, kind), placement.get(kind)) for kind in MEMORY_CLASSES),
        ]
        yield from ((place, section) for place, section in found if isinstance(section, str))


def _is_built(model: object, target: str) -> bool:
    targets = model.get("targets") if isinstance(model, dict) else None
    return not isinstance(targets, list) or target in targets


def _mapping(data: object, key: str) -> Mapping[str, object]:
    value = data.get(key) if isinstance(data, dict) else None
    return value if isinstance(value, dict) else {}
