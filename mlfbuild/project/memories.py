"""The memories of a target, and the shares of a model: what several keys, the part and the board say, joined.

Data: a ``TargetSpec`` becomes ``TargetMemory`` values (``memories_of``), in the order of the key ``memories``, then
those of the part and of the board that the key does not name. A model and its target become the ``ArenaMemory`` values
of a compile request (``arena_memories``).

The rules:

1. A value is that of ``memories``, of ``timing.memories``, of the part, of the board's region, the first that has it.
   Two keys that have different values are refused (``memory_checks``).
2. The first memory of a part, the region ``FLASH`` of a board, and memories with ``read-only`` have code and constants.
   All others have arenas.
3. The main RAM is the second memory of a part, ``RAM`` of a board, the region of ``.bss`` in a linker script, or
   otherwise the memory called ``ram``. Linker scripts collect its section ``.bss.noinit.tvm``.
4. Every other memory has a section of its own in a region of its name, in upper case or as the script spells it. These
   are added to ``regions`` (``with_derived``), so that everything that places sections knows them.
5. Waits follow from the cycle model (``memory_waits``). Without any timing the order of the file ranks memories.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from mlfbuild.library.cgen import WORKSPACE_SECTION
from mlfbuild.library.keys import MEMORY_CLASSES, ArenaMemory, FastWeights, is_collected
from mlfbuild.project.described_mcu import main_by_name, mcu_of, memory_of_region, parts_of_memories
from mlfbuild.project.memory_keys import TargetMemoryKeys
from mlfbuild.project.memory_waits import is_timed, waits_of
from mlfbuild.project.specification import ModelSpec, TargetSpec
from mlfbuild.targets import BOARDS, Board, DeviceMemoryKeys, Mcu, MemoryRegion, RegionKeys

_FLASH, _RAM = "flash", ("ram", "sram")
_EXTERNAL = ("external", "psram", "ddr", "sdram")
"""Names of external RAM: on a board with one region for it, each of them means that one."""
_EXTERNAL_REGIONS = ("PSRAM", "DDR")
_BEHIND = 1_000
"""The additional wait of 1,000 loads in a memory after all others."""


@dataclass(frozen=True)
class TargetMemory:
    """A memory of a target."""

    name: str
    size: int
    """Bytes; 0 if nothing says it, which ``memory_checks`` refuses for a memory with arenas."""
    origin: int | None
    """First address; ``None`` if only the link decides it."""
    section: str
    """Linker section of arenas in it."""
    region: str
    """Its region in linker scripts, as far as known: that of ``regions``, of the board, or its name in upper case."""
    read_only: bool = False
    main: bool = False
    """Whether linker scripts put variables there."""

    @property
    def placed(self) -> bool:
        """Whether its section must be placed in its region, because no linker script collects the section."""
        return not (self.read_only or self.main or is_collected(self.section))


def memories_of(target: TargetSpec) -> tuple[TargetMemory, ...]:
    """Return the memories of ``target``: those of its key, then others of its part and board; none for this machine."""
    mcu, board = mcu_of(target), BOARDS.get(target.board or "")
    known = [*target.memories, *(mcu.memories if mcu else ())]
    regions = {name: board_region(board, mcu, name) for name in known} if board else {}
    for region in board.regions.values() if board else ():
        if region not in regions.values():
            regions.setdefault((mcu and memory_of_region(mcu, region.name)) or region.name.lower(), region)
    code, main = _code_memory(mcu, regions, board), _main_memory(target, mcu, regions, board)
    return tuple(
        _memory(target, name, mcu, regions.get(name), code, main) for name in dict.fromkeys([*known, *regions])
    )


def board_region(board: Board, mcu: Mcu | None, name: str) -> MemoryRegion | None:
    """Return the region of ``board`` that is the memory ``name`` of a target, ``None`` if it has none."""
    for region in board.regions.values():
        if region.name.lower() == name or (mcu is not None and memory_of_region(mcu, region.name) == name):
            return region
    usual = {_FLASH: board.flash, **dict.fromkeys(_RAM, board.ram)} if mcu is None else {}
    external = [region for region in board.others if region.name in _EXTERNAL_REGIONS]
    if len(external) == 1 and mcu is None:
        usual |= dict.fromkeys(_EXTERNAL, external[0])
    return usual.get(name)


def _code_memory(mcu: Mcu | None, regions: Mapping[str, MemoryRegion | None], board: Board | None) -> str:
    if mcu is not None:
        return next(iter(mcu.memories))
    return next((name for name, region in regions.items() if board and region == board.flash), _FLASH)


def _main_memory(
    target: TargetSpec, mcu: Mcu | None, regions: Mapping[str, MemoryRegion | None], board: Board | None
) -> str:
    if mcu is not None:
        return list(mcu.memories)[1]
    on_board = (name for name, region in regions.items() if board and region == board.ram)
    return next(on_board, "") or main_by_name(target)


def _memory(
    target: TargetSpec, name: str, mcu: Mcu | None, region: MemoryRegion | None, code: str, main: str
) -> TargetMemory:
    keys = target.memories.get(name, TargetMemoryKeys())
    timed = mcu.memories.get(name) if mcu else None
    size = keys.size or (timed.size if timed else 0) or (region.size if region else 0)
    origin = keys.origin if keys.origin is not None else region.origin if region else None
    section = keys.section or (WORKSPACE_SECTION if name == main else f".mlf_{name}")
    spelled = target.memory_script.regions.get(name) if target.memory_script else None
    linked = target.regions.get(section) or spelled or (region.name if region else name.upper())
    read_only = keys.read_only if keys.read_only is not None else name == code
    return TargetMemory(name, size, origin, section, linked, read_only, name == main)


def with_derived(target: TargetSpec, *, runner_memory_given: bool) -> TargetSpec:
    """Return ``target`` with the keys that its ``memories`` determine: ``regions``, and ``memory`` of its runner.

    ``runner_memory_given`` is whether the project file has the latter, which then stays.
    """
    if not target.memories:
        return target
    memories = [memory for memory in memories_of(target) if memory.name in target.memories]
    regions = {memory.section: memory.region for memory in memories if memory.placed}
    target = replace(
        target, regions={**target.regions, **{k: v for k, v in regions.items() if k not in target.regions}}
    )
    runner, main = target.runner, next((memory for memory in memories if memory.main), None)
    # The part's own memory map stays unless the key says where the RAM is.
    if (
        runner is None
        or runner.qemu
        or runner_memory_given
        or main is None
        or target.memories[main.name].origin is None
    ):
        return target
    flash = next((_region(memory) for memory in memories if memory.read_only and memory.origin is not None), None)
    if flash is None and runner.memory is not None:
        flash = runner.memory.flash
    return replace(target, runner=replace(runner, memory=DeviceMemoryKeys(_region(main), flash)))


def _region(memory: TargetMemory) -> RegionKeys:
    return RegionKeys(memory.origin or 0, memory.size)


def keeps_one_arena(model: ModelSpec) -> str:
    """Return why ``model`` has one arena on every target, as a clause; empty if it may have several."""
    if model.compiler != "native":
        return f'compiler "{model.compiler}" has one workspace'
    if model.executor == "graph":
        return "a graph has one workspace"
    pinned = next((kind for kind in MEMORY_CLASSES if kind in model.placement.sections), None)
    if pinned is not None:
        return f"placement.{pinned} puts it into one memory"
    packed = model.placement.shares_workspace and model.options.get("interface-api") == "packed"
    return "packed code shares only a workspace in one memory" if packed else ""


def chosen_memories(model: ModelSpec, target: TargetSpec) -> list[TargetMemory]:
    """Return the memories of ``target`` over which ``model`` is planned, in the order of the file; none for one arena.

    These are those of the key of the target, or those that the model names, which are a part of them if both do.
    """
    return [] if keeps_one_arena(model) else _allowed(model, target)


def only_memory(model: ModelSpec, target: TargetSpec) -> TargetMemory | None:
    """Return the memory of ``target`` that has the whole workspace of ``model``, which keeps one arena.

    It is the one that the model names, that of the section of its workspace, or the main RAM. ``None`` if the target
    does not have it, or if the model may have several arenas.
    """
    if not keeps_one_arena(model):
        return None
    section = model.placement.workspace
    allowed = _allowed(model, target) if section is None else memories_of(target) if target.memories else ()
    return next((each for each in allowed if model.memories or each.section == (section or WORKSPACE_SECTION)), None)


def _allowed(model: ModelSpec, target: TargetSpec) -> list[TargetMemory]:
    if target.cpu == "host" or not (target.memories or model.memories):
        return []
    memories = {memory.name: memory for memory in memories_of(target) if not memory.read_only}
    names = target.memories or model.memories
    return [memories[name] for name in names if name in memories and (not model.memories or name in model.memories)]


def arena_memories(
    model: ModelSpec, target: TargetSpec, shares: Mapping[str, int] | None = None
) -> tuple[ArenaMemory, ...]:
    """Return the memories in a request to compile ``model`` for ``target``; empty for one arena, as without keys.

    ``shares`` are the bytes of each memory that it may take beside other models; those of its key take precedence.
    """
    shares, weights = shares or {}, model.weights
    chosen = chosen_memories(model, target)
    waits = waits_of(parts_of_memories(target), [memory.name for memory in chosen], timed=has_timing(target, chosen))
    return tuple(
        ArenaMemory(
            memory.name,
            max(0, (model.memories.get(memory.name) or shares.get(memory.name, memory.size)) - _copied(model, memory)),
            memory.section, load, store, weights.stream if weights and weights.memory == memory.name else 0,
        )
        for memory, (load, store) in zip(chosen, waits, strict=True)
    )  # fmt: skip


def _copied(model: ModelSpec, memory: TargetMemory) -> int:
    return model.weights.copy if model.weights and model.weights.memory == memory.name else 0


def fast_weights(model: ModelSpec, target: TargetSpec) -> FastWeights | None:
    """Return the memory for weights of ``model`` in a request for ``target``; ``None`` if it names none."""
    chosen, wanted = chosen_memories(model, target), model.weights
    if wanted is None or not any(memory.name == wanted.memory for memory in chosen):
        return None
    section = model.placement.constants("weights")
    placed = [each for each in memories_of(target) if section and target.regions.get(section) == each.region]
    sources = placed or [each for each in memories_of(target) if each.read_only]
    parts, source = parts_of_memories(target), sources[0].name if sources else _FLASH
    waits = [load for load, _ in waits_of(parts, [each.name for each in chosen], timed=has_timing(target, chosen))]
    # A flash of which nothing says the speed is behind all memories.
    wait = waits_of(parts, [source], timed=True)[0][0] if source in parts[0] else max(waits) + _BEHIND
    return FastWeights(wanted.memory, wanted.copy, wanted.stream, wait)


def has_timing(target: TargetSpec, chosen: Sequence[TargetMemory]) -> bool:
    """Return whether anything says how fast the ``chosen`` memories are: the part, or keys of the target."""
    return mcu_of(target) is not None or any(is_timed(target.memories.get(each.name)) for each in chosen)


def ranked_by_order(models: Sequence[ModelSpec], target: TargetSpec) -> Iterator[str]:
    """Yield the names of those of ``models`` whose memories on ``target`` are ranked by their order in the file."""
    for model in models:
        chosen = chosen_memories(model, target)
        if len(chosen) > 1 and not has_timing(target, chosen):
            yield model.name
