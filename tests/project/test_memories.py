"""Memories of targets and shares of models: what follows from the keys, the part, the board and a linker script."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlfbuild.library.cgen import WORKSPACE_SECTION
from mlfbuild.library.keys import ArenaMemory, FastWeights
from mlfbuild.project import (
    Project,
    TargetMemory,
    arena_memories,
    contested,
    fast_weights,
    load_project,
    memories_of,
    only_memory,
    shares_of,
    weight_problems,
)
from mlfbuild.project.memory_waits import waits_of
from mlfbuild.targets import MemoryCache, RegionKeys, TimedMemory

KIB = 1024
MEMORIES = "{dtcm: {size: 64 KiB, section: .dtcm}, sram: {}, ddr: {size: 4 MiB}}"
BOARD = f"{{cpu: cortex-m55, board: mps3-an547, memories: {MEMORIES}}}"
NET = "net: {source: a.tflite}"


def project(folder: Path, target: str, *models: str, more: str = "") -> Project:
    """Return a project with the target ``t``."""
    path = folder / "mlfbuild.yml"
    path.write_text(
        f"mlfbuild: 1\ntargets: {{t: {target}}}\nmodels:\n" + "".join(f"  {each}\n" for each in models or (NET,)) + more
    )
    return load_project(path)


def arenas(found: Project, model: str = "net", target: str = "t") -> tuple[ArenaMemory, ...]:
    return arena_memories(found.models[model], found.targets[target])


def called(found: Project, name: str) -> TargetMemory:
    return next(memory for memory in memories_of(found.targets["t"]) if memory.name == name)


def test_memories_of_a_board(tmp_path: Path) -> None:
    found = project(tmp_path, BOARD)
    assert found.targets["t"].regions == {".dtcm": "DTCM", ".mlf_ddr": "DDR"}
    # Nothing says their speeds, so each is slower than the one before.
    assert arenas(found) == (
        ArenaMemory("dtcm", 64 * KIB, ".dtcm", 0, 0),
        ArenaMemory("sram", 4 * KIB * KIB, WORKSPACE_SECTION, 1000, 1000),
        ArenaMemory("ddr", 4 * KIB * KIB, ".mlf_ddr", 2000, 2000),
    )
    assert called(found, "dtcm").origin == 0x30000000 and called(found, "sram").main
    assert called(found, "flash").read_only and called(found, "itcm").region == "ITCM"


def test_a_model_has_shares_and_takes_no_more_memories_than_it_names(tmp_path: Path) -> None:
    listed, shared = (
        "net: {source: a.tflite, memories: [ddr, dtcm]}",
        "two: {source: a.tflite, memories: {sram: 8 KiB}}",
    )
    found = project(tmp_path, BOARD, listed, shared)
    assert [(each.name, each.size) for each in arenas(found)] == [("dtcm", 64 * KIB), ("ddr", 4 * KIB * KIB)]
    assert [(each.name, each.size) for each in arenas(found, "two")] == [("sram", 8 * KIB)]


@pytest.mark.parametrize(
    "model",
    [
        "net: {source: a.tflite, placement: {workspace: .bss.fast}}",
        "net: {source: a.tflite, placement: {state: .bss.fast}}",
        "net: {source: a.tflite, executor: graph}",
        "net: {source: a.tar}",
    ],
)
def test_models_that_keep_one_arena(tmp_path: Path, model: str) -> None:
    assert arenas(project(tmp_path, BOARD, model)) == ()


def test_this_machine_and_shared_packed_code_have_one_arena(tmp_path: Path) -> None:
    models = "net: {source: a.tflite, options: {interface-api: packed}}", "two: {source: a.tflite}"
    found = project(tmp_path, BOARD, *models, more="share-workspace: [net, two]\n")
    assert (arenas(found), len(arenas(found, "two"))) == ((), 3)
    named = project(tmp_path, f"{BOARD}, this: {{cpu: host}}", "net: {source: a.tflite, memories: [sram]}")
    assert (arenas(named, target="this"), len(arenas(named))) == ((), 1)


def test_one_arena_is_in_the_memory_that_the_model_names_or_in_the_main_ram(tmp_path: Path) -> None:
    models = (
        "graph: {source: a.tflite, executor: graph, memories: [ddr]}",
        "foreign: {source: a.tar, memories: {dtcm: 8 KiB}}",
        "placed: {source: a.tflite, placement: {workspace: .dtcm}}",
        "usual: {source: a.tar}",
    )
    found = project(tmp_path, BOARD, *models)
    target = found.targets["t"]
    places = {name: only_memory(model, target) for name, model in found.models.items()}
    names = {name: memory.name for name, memory in places.items() if memory}
    assert names == {"graph": "ddr", "foreign": "dtcm", "placed": "dtcm", "usual": "sram"}
    # Without a need, a model counts as one that lacks memory.
    shares = shares_of(found, target, {})
    assert shares == {"graph": {"ddr": 4 << 20}, "foreign": {"dtcm": 8 * KIB}, "placed": {"dtcm": 56 * KIB},
                      "usual": {"sram": 4 << 20}}  # fmt: skip


@pytest.mark.parametrize(
    ("needs", "shares"),
    [
        ({"net": 1600, "two": 3200, "three": 160}, {"net": 1600, "two": 3200, "three": 160}),
        ({"net": 48 * KIB, "two": 100 * KIB, "three": 160}, {"net": 32688, "two": 32688, "three": 160}),
        ({"net": 1024, "two": None, "three": 160}, {"net": 1024, "two": 64 * KIB - 1184, "three": 160}),
    ],
)
@pytest.mark.parametrize("turns", [False, True])
def test_models_of_an_image_divide_a_memory(
    tmp_path: Path, needs: dict[str, int | None], shares: dict[str, int], *, turns: bool
) -> None:
    models = [f"{name}: {{source: a.tflite, memories: [dtcm]}}" for name in needs]
    more = "share-workspace: [net, two]\n" if turns else ""
    found = project(tmp_path, BOARD, *models, more=more)
    its = shares_of(found, found.targets["t"], needs)
    if turns:  # two models are one user
        largest = None if None in needs.values() else max(needs["net"] or 0, needs["two"] or 0)
        rest = 64 * KIB - 160
        shares = {"three": 160} | dict.fromkeys(["net", "two"], rest if largest is None else min(rest, largest))
    assert its == {name: {"dtcm": share} for name, share in shares.items()}
    assert contested(found, found.targets["t"]) == {*needs}


def test_weights_are_beside_arenas(tmp_path: Path) -> None:
    weights = "weights: {memory: dtcm, copy: 8 KiB, stream: 2 KiB}"
    models = [f"{name}: {{source: a.tflite, memories: [dtcm], {weights}}}" for name in ("net", "two")]
    found = project(tmp_path, BOARD, *models, "three: {source: a.tflite}", more="share-workspace: [net, two]\n")
    target = found.targets["t"]
    shares = shares_of(found, target, {"net": 10 * KIB, "two": 100 * KIB, "three": 4 * KIB})
    assert {name: its["dtcm"] for name, its in shares.items()} == {"net": 52 * KIB, "two": 52 * KIB, "three": 4 * KIB}
    (memory,) = arena_memories(found.models["net"], target, shares["net"])
    assert (memory.size, memory.reserved) == (44 * KIB, 2 * KIB)
    # Nothing says how fast flash is, so it is behind all others.
    assert fast_weights(found.models["net"], target) == FastWeights("dtcm", 8 * KIB, 2 * KIB, 1000)
    part = project(tmp_path, "{mcu: stm32f746, memories: {dtcm: {}}}", f"net: {{source: a.tflite, {weights}}}")
    its = fast_weights(part.models["net"], part.targets["t"])
    assert its is not None and its.source_wait > 0


@pytest.mark.parametrize(
    ("model", "code", "key"),
    [
        ("{source: a.tflite, weights: {memory: dtmc, copy: 1 KiB}}", "unknown-memory", "weights.memory"),
        ("{source: a.tflite, weights: {memory: dtcm}}", "missing-key", "weights"),
        ("{source: a.tflite, weights: {memory: dtcm, copy: 60 KiB, stream: 5 KiB}}", "memory-too-large", "weights"),
        ("{source: a.tar, weights: {memory: dtcm, copy: 1 KiB}}", "misplaced-key", "weights"),
        ("{source: a.tflite, executor: graph, weights: {memory: dtcm, copy: 1}}", "misplaced-key", "weights"),
    ],
)
def test_weights_that_cannot_be_copied_are_refused(tmp_path: Path, model: str, code: str, key: str) -> None:
    found = list(weight_problems(project(tmp_path, BOARD, f"net: {model}")))
    assert [(".".join(map(str, path)), mistake.code) for path, mistake in found] == [(f"models.net.{key}", code)]


def test_images_with_one_model_have_all_memory_for_it(tmp_path: Path) -> None:
    images = "firmware: {a: {cmake: ., models: [net]}, b: {cmake: ., models: [two]}}\n"
    found = project(tmp_path, BOARD, NET, "two: {source: a.tflite}", more=images)
    target = found.targets["t"]
    assert contested(found, target) == set()
    assert {name: its["dtcm"] for name, its in shares_of(found, target, {}).items()} == dict.fromkeys(
        ["net", "two"], 64 * KIB
    )


def test_without_the_key_of_the_target_a_model_has_those_of_its_board_or_part(tmp_path: Path) -> None:
    board = project(tmp_path, "{cpu: cortex-m55, board: mps3-an547}", "net: {source: a.tflite, memories: [ddr, ram]}")
    assert [(each.name, each.load_wait) for each in arenas(board)] == [("ddr", 0), ("ram", 1000)]
    part = project(tmp_path, "{mcu: stm32f746}", "net: {source: a.tflite, memories: [sram, dtcm]}")
    sram, dtcm = arenas(part)
    assert (dtcm.load_wait, dtcm.store_wait, dtcm.size, dtcm.section) == (0, 0, 64 * KIB, ".mlf_dtcm")
    # Cached: words of a line wait for one miss.
    assert 0 < sram.load_wait < 1000 and sram.section == WORKSPACE_SECTION
    assert arenas(project(tmp_path, "{mcu: stm32f746}")) == ()


def test_memories_change_the_cycle_model_and_the_memory_of_the_runner(tmp_path: Path) -> None:
    own = (
        "{cpu: cortex-m7, timing: {clock: 100 MHz}, runner: {gdb: 'localhost:1'}, memories: {flash: {size: 1 MiB, "
        "origin: 0x08000000}, dtcm: {size: 64 KiB}, ram: {size: 256 KiB, origin: 0x20000000, waits: 2}}}"
    )
    found = project(tmp_path, own)
    assert [(each.name, each.load_wait) for each in arenas(found)] == [("dtcm", 0), ("ram", 2000)]
    runner = found.targets["t"].runner
    assert runner is not None and runner.memory is not None
    assert runner.memory.ram == RegionKeys(0x20000000, 256 * KIB)
    assert runner.memory.flash == RegionKeys(0x08000000, 1024 * KIB)
    changed = project(tmp_path, "{mcu: stm32l4r5, memories: {sram: {waits: 3}, ccm: {size: 16 KiB}}}")
    assert [(each.name, each.load_wait) for each in arenas(changed)] == [("sram", 3000), ("ccm", 0)]


def test_memories_of_a_linker_script(tmp_path: Path) -> None:
    (tmp_path / "fw.ld").write_text(
        "MEMORY { ROM (RX!W) : org = 010, len = 2 * 0x400 /* } */\n"
        "  DTCMRAM (xrw) : ORIGIN = 0x20000000, LENGTH = 128K\n"
        "NONE (rw) : o = 0, l = 0; Ram-D1 : ORIGIN = ORIGIN(DTCMRAM) + 64M, LENGTH = (LENGTH(DTCMRAM) - 16) / 4 }\n"
        "SECTIONS { .bss (NOLOAD) : { *(.bss*) } >Ram-D1 }\n"
    )
    found = project(tmp_path, "{cpu: cortex-m7, memories: fw.ld}")
    memories = {memory.name: memory for memory in memories_of(found.targets["t"])}
    assert list(memories) == ["rom", "dtcmram", "ram_d1"]
    assert memories["rom"] == TargetMemory("rom", 2 * KIB, 8, ".mlf_rom", "ROM", read_only=True)
    assert memories["ram_d1"] == TargetMemory(
        "ram_d1", 32 * KIB - 4, 0x24000000, WORKSPACE_SECTION, "Ram-D1", main=True
    )
    assert found.targets["t"].regions == {".mlf_dtcmram": "DTCMRAM"}
    assert [each.name for each in arenas(found)] == ["dtcmram", "ram_d1"]


def test_waits_of_words() -> None:
    caches = {"l1": MemoryCache(4096, 32, 4), "back": MemoryCache(4096, 32, 4, hit=1, miss=2, write_back=True)}
    memories = {
        "tcm": TimedMemory(1),
        "sram": TimedMemory(1, waits=2, write_waits=1),
        "hidden": TimedMemory(1, waits=2, hidden_waits=3),
        "half": TimedMemory(1, width=2, waits=4, burst=1),
        "through": TimedMemory(1, width=8, waits=8, burst=3, write_waits=5, read_cache="l1"),
        "back": TimedMemory(1, width=4, waits=6, burst=0, read_cache="back"),
    }
    found = dict(zip(memories, waits_of((memories, caches), [*memories], timed=True), strict=True))
    assert found["tcm"] == (0, 0)
    assert found["sram"] == (2000, 1000)
    assert found["hidden"] == (0, 0)
    assert found["half"] == (6000, 0)
    # A line of 8 words: 8 waits, then three parts of 4 cycles, of which the core takes 8 for its words.
    assert found["through"] == ((8 + 12 - 8) * 125, 5000)
    # Every word waits 1 for the cache; a line takes 2 + 6 cycles. Stores read it in 16 cycles and write it back in 8.
    assert found["back"] == ((8 + 2 + 6) * 125, (2 + 6 + 1 + 7 + 8 - 8) * 125)
