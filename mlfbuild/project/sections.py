"""Checks of the linker sections in a project file: what each contains, and its memory region on each target.

Like those in ``references``, they work on the plain values and skip values of the wrong type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mlfbuild.core import Mistake, unknown
from mlfbuild.library import keys
from mlfbuild.project.device import DEVICES
from mlfbuild.project.document import Document, mapping_in
from mlfbuild.project.problems import KeyPath, dotted
from mlfbuild.targets import BOARDS

# The file has the bytes of one section, so it needs one that a model fills with constants.
_PARAMS_BINARY = "params-binary"
_MEMORIES = "memories"
_FAST_SECTION = "fast-section"

Use = tuple[KeyPath, str]
"""The key that names a section, and its name."""


def check_sections(document: Document) -> None:
    """Add every mistake about sections to the problems of ``document``.

    A section has one kind of content in the whole project. A region of a target must be for a section that its models
    use, and must exist on its board if mlfbuild knows that.
    """
    models = document.mapping("models")
    uses = [
        *_uses(models),
        *(use for name, target in document.mapping("targets").items() for use in _target_uses(name, target)),
    ]
    _check_kinds(document, uses)
    _check_params_binaries(document, uses)
    for name, target in document.mapping("targets").items():
        if isinstance(target, dict) and isinstance(target.get("regions"), dict):
            # Other models place nothing in images of this target.
            built = {key: model for key, model in models.items() if _is_built(model, name)}
            _check_regions(document, name, target, [*_uses(built), *_target_uses(name, target)])


def _check_kinds(document: Document, uses: Sequence[Use]) -> None:
    """Check that every section can contain code, constants or memory, and only one of them in the whole project."""
    # One output section for constants and memory has contents for both: the zeros of a workspace would take flash,
    # without a message of the linker.
    first: dict[str, tuple[keys.SectionContent, KeyPath]] = {}
    for path, section in uses:
        content = _content(path)
        mistake = keys.section_problem(section, content)
        known, place = first.setdefault(section, (content, path))
        if not keys.SECTION_NAME.fullmatch(section):
            continue  # already reported
        if mistake is not None:
            document.add(path, mistake)
        elif known is not content:
            reason = f"{section} cannot contain {content.value}, because {dotted(place)} places {known.value} in it"
            document.add(path, Mistake("mixed-section", reason=reason, hint="choose another name"))


def _check_params_binaries(document: Document, uses: Sequence[Use]) -> None:
    constants = dict.fromkeys(section for path, section in uses if _content(path) is keys.SectionContent.CONSTANTS)
    for name, firmware in document.mapping("firmware").items():
        section = firmware.get(_PARAMS_BINARY) if isinstance(firmware, dict) else None
        if not isinstance(section, str) or not keys.SECTION_NAME.fullmatch(section) or section in constants:
            continue
        if constants:
            mistake = unknown("section", section, constants)
        else:
            hint = f"give one placement: {{params: {section}}}"
            mistake = Mistake("unused-section", reason=f"no model places constants in {section}", hint=hint)
        document.add(("firmware", name, _PARAMS_BINARY), mistake)


def _check_regions(document: Document, name: str, target: Mapping[str, object], uses: Sequence[Use]) -> None:
    used = {section: _content(path) for path, section in uses}
    symbols: dict[str, str] = {}
    if target.get("cpu") == "host":
        reason = "this machine has no linker script with regions"
        document.report(("targets", name, "regions"), "misplaced-key", reason, "remove regions", at_key=True)
    for section, region in mapping_in(target, "regions").items():
        path = ("targets", name, "regions", section)
        if not keys.SECTION_NAME.fullmatch(section):
            continue  # already reported
        unplaceable = _unplaceable(section, used, symbols.setdefault(keys.symbol_stem(section), section))
        wrong = _wrong_region(str(target.get("board")), section, region) if isinstance(region, str) else None
        if unplaceable is not None:
            document.add(path, unplaceable, at_key=True)
        elif wrong is not None:
            document.add(path, wrong)


def _unplaceable(section: str, used: Mapping[str, keys.SectionContent], namesake: str) -> Mistake | None:
    """Return why no region can be chosen for ``section``, whose symbols are named like those of ``namesake``."""
    if keys.is_collected(section):
        hint = f"choose another name, such as .mlf{section}"
        return Mistake("reserved-section", reason="linker scripts define it, or match it with a pattern", hint=hint)
    if section not in used:
        if used:
            return unknown("section", section, used)
        return Mistake("unused-section", reason="no model of the target places data in it", hint="remove it")
    if used[section] is keys.SectionContent.CODE:
        hint = "remove it, and name the section in your linker script, in an output section that is copied"
        return Mistake("region-of-code", reason="start-up code must copy functions to RAM", hint=hint)
    if namesake != section:
        reason = f"its linker symbols would have the same names as those of {namesake}"
        return Mistake("section-symbols-clash", reason=reason, hint="choose another name")
    return None


def _wrong_region(board_name: str, section: str, region: str) -> Mistake | None:
    """Return why ``region`` of the board, if it is one that mlfbuild knows, cannot be that of ``section``."""
    board = BOARDS.get(board_name)
    if board is None:
        return None
    if region not in board.regions:
        return unknown("memory region", region, board.regions)
    # The heap begins after the last variable and grows towards the stack; a section in between would be overwritten.
    if region == board.ram.name:
        hint = f"use another region, or no region and the name .bss{section}"
        return Mistake("region-of-stack", reason=f"{region} of {board.name} contains stack and heap", hint=hint)
    return None


def _uses(models: Mapping[str, object]) -> Iterator[Use]:
    """Yield every section that a model names."""
    for name, model in models.items():
        placement = mapping_in(model, "placement")
        path = ("models", name, "placement")
        params = placement.get(keys.PARAMS)
        named = mapping_in(placement, keys.PARAMS)
        found = [
            ((*path, keys.PARAMS), params),
            *(((*path, keys.PARAMS, kind), named.get(kind)) for kind in keys.CONSTANT_CLASSES),
            *(((*path, kind), placement.get(kind)) for kind in (*keys.MEMORY_CLASSES, keys.CODE)),
        ]
        yield from ((place, section) for place, section in found if isinstance(section, str))


def _target_uses(name: str, target: object) -> Iterator[Use]:
    """Yield every section that a target has for data of devices, for that of models, and for the memory of its NPU."""
    for device in mapping_in(target, DEVICES):
        section = mapping_in(mapping_in(target, DEVICES), device).get("section")
        if isinstance(section, str):
            yield ("targets", name, DEVICES, device, "section"), section
    for memory in mapping_in(target, _MEMORIES):
        keys = mapping_in(target, _MEMORIES, memory)
        path = ("targets", name, _MEMORIES, memory)
        if isinstance(section := keys.get("section"), str):
            yield (*path, "section"), section
        elif not keys.get("read-only"):
            yield path, f".mlf_{memory}"
    section = mapping_in(target, "npu").get(_FAST_SECTION)
    if isinstance(section, str):
        yield ("targets", name, "npu", _FAST_SECTION), section


def _content(path: KeyPath) -> keys.SectionContent:
    """Return what the section at ``path`` contains: data of a device, memory of an NPU or a model, or a class."""
    if path[0] == "targets":
        memory = path[2] == _MEMORIES or path[-1] == _FAST_SECTION
        return keys.SectionContent.MEMORY if memory else keys.SectionContent.CONSTANTS
    return keys.content_of(str(path[3]))


def _is_built(model: object, target: str) -> bool:
    targets = model.get("targets") if isinstance(model, dict) else None
    return not isinstance(targets, list) or target in targets
