"""Weights that are copied to fast memory: which ones, when, and numbers with a DMA that is as late as it may be."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pytest

from mlfbuild.archive import pack_archive
from mlfbuild.compilers import compiler_called
from mlfbuild.core.errors import UsageError
from mlfbuild.library import CodegenFile, CompileRequest, Library
from mlfbuild.library.keys import ArenaMemory, FastWeights, Placement
from mlfbuild.native.lowering import Constant
from mlfbuild.native.memory import WeightUse, plan_weights
from mlfbuild.targets import CPUS
from support.errors import raises
from support.examples import first_on_push
from support.host_c import WARNINGS, run, run_on_host, write_tree
from support.native import generated

KIB = 1024
LATE = """\
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
static struct { uint8_t *to; const uint8_t *from; uint32_t size; } begun[8];
static unsigned count;
void mlf_net_copy_start(void *to, const void *from, uint32_t size);
void mlf_net_copy_wait(void);
/* What is there is lost at once, and the weights arrive at the end. */
void mlf_net_copy_start(void *to, const void *from, uint32_t size)
{
    if (count == 8u || (uintptr_t)to % 16u != 0u) abort();
    memset(to, 0x5a, size);
    begun[count].to = to, begun[count].from = from, begun[count].size = size;
    count++;
}
void mlf_net_copy_wait(void)
{
    if (count == 0u) abort();
    while (count > 0u) {
        count--;
        memcpy(begun[count].to, begun[count].from, begun[count].size);
    }
}
"""


def compiled(
    source: Path, copy: int, stream: int, cpu: str = "cortex-m4", *, sram: int = 256 * KIB, **changes: Any
) -> Library:
    fast = ArenaMemory("dtcm", 64 * KIB, ".mlf_dtcm", 0, 0, stream)
    memories = (fast, ArenaMemory("sram", sram, ".bss.noinit.tvm", 1000, 1000)) if sram else (fast,)
    wanted = CompileRequest(
        "net", source, CPUS[cpu], memories=memories, weights=FastWeights("dtcm", copy, stream, 5000)
    )
    return compiler_called("native").compile(replace(wanted, **changes))


def notes(library: Library) -> list[str]:
    return [note for note in library.modules[0].notes if note.startswith("weights: ")]


CASES = [
    ("kws", "cortex-m55", 4 * KIB, 12 * KIB, {}),
    ("ic", "cortex-m4", 2 * KIB, 20 * KIB, {}),
    ("kws", "cortex-m4", 0, 3 * KIB, {"sram": 0}),
    ("vww", "cortex-m4", 0, 12 * KIB, {"placement": Placement(shares_workspace=1)}),
    ("vww", "cortex-m55", 24 * KIB, 0, {"options": {"io": "arena"}}),
    ("kws", "cortex-m0plus", 8 * KIB, 8 * KIB, {"options": {"trace": True}}),
    ("ad", "cortex-m4", 0, 48 * KIB, {"options": {"layout": "single-file"}}),
    ("ic", "cortex-m55", 16 * KIB, 16 * KIB, {"options": {"memory": "smallest"}}),
]


@pytest.mark.parametrize(("name", "cpu", "copy", "stream", "changes"), first_on_push(CASES, 3))
def test_numbers_are_the_same(
    shared: Path, name: str, cpu: str, copy: int, stream: int, changes: dict[str, Any]
) -> None:
    vectors = np.load(shared / f"golden/{name}_int8.npz")
    library = compiled(shared / f"models/{name}_int8.tflite", copy, stream, cpu, **changes)
    late = CodegenFile(PurePosixPath("host/src/late.c"), LATE.encode())
    module = library.modules[0]
    with_dma = replace(library, modules=(replace(module, codegen=(*module.codegen, late)),))
    for each in (library, with_dma) if stream else (library,):
        (found,) = run_on_host(each, [vectors["in0"][:1]])
        np.testing.assert_array_equal(found.ravel(), vectors["out0"][0].ravel())
    text = generated(library)
    assert ("mlf_net_load_weights();" in text) == bool(copy)
    assert ("mlf_net_copy_start(&" in text) == bool(stream)
    assert len(notes(library)) == bool(copy) + bool(stream)


def test_layers_of_a_vector_that_are_larger_than_the_room_are_streamed_in_parts(shared: Path) -> None:
    source, vectors = shared / "models/ad_int8.tflite", np.load(shared / "golden/ad_int8.npz")
    library = compiled(source, 0, 24 * KIB)
    # The first layer and the last one have 80 KiB each.
    total = library.modules[0].main[0].constants_size
    assert notes(library)[0].startswith(f"weights: {total:,} bytes of 24 operators are streamed to dtcm")
    late = CodegenFile(PurePosixPath("host/src/late.c"), LATE.encode())
    module = library.modules[0]
    with_dma = replace(library, modules=(replace(module, codegen=(*module.codegen, late)),))
    (found,) = run_on_host(with_dma, [vectors["in0"][:1]])
    np.testing.assert_array_equal(found.ravel(), vectors["out0"][0].ravel())
    # Without room for 16 channels, the layers stay as they are, and in flash.
    small = compiled(source, 0, 2 * KIB)
    assert "of 2 operators" in notes(small)[0]


def test_only_asked_for_and_always_the_same(shared: Path, tmp_path: Path, tool: Callable[[str], str]) -> None:
    source = shared / "models/kws_int8.tflite"
    library = compiled(source, 4 * KIB, 8 * KIB)
    assert pack_archive(library) == pack_archive(compiled(source, 4 * KIB, 8 * KIB))
    usual = compiled(source, 0, 0, weights=None)
    assert "copy" not in generated(usual, "tvmgen_net.h") and not notes(usual)
    # The room for blocks is a part of the workspace.
    sizes = [each.modules[0].main[0].workspace_size for each in (library, usual)]
    assert sizes[0] == sizes[1] + 8 * KIB
    write_tree(library, tmp_path)
    compiler = [tool("arm-none-eabi-gcc"), *CPUS["cortex-m4"].flags, *WARNINGS, "-O2"]
    run([*compiler, "-I", tmp_path / "host/include", "-c", tmp_path / "host/src/net_lib0.c", "-o", tmp_path / "net.o"])
    assert ".mlf_dtcm" in run([tool("arm-none-eabi-objdump"), "-h", tmp_path / "net.o"])


def use(step: int, size: int, loads: int) -> WeightUse:
    return WeightUse(step, Constant.array(f"filter{step}", "int8_t", np.zeros(size, np.int8)), loads)


def test_hot_weights_are_copied_first() -> None:
    memory = ArenaMemory("dtcm", 64 * KIB, ".dtcm", 0, 0, 0)
    uses = [use(0, 4096, 1024), use(1, 512, 50_000), use(2, 640, 90_000), use(3, 100, 25)]
    plan = plan_weights(uses, FastWeights("dtcm", 1280, 0, 3000), memory)
    assert [constant.name for constant, _ in plan.copied] == ["filter2", "filter1", "filter3"]
    assert (plan.size, plan.gain) == (640 + 512 + 112, 3000 * (90_000 + 50_000 + 25))
    # Nothing is gained if both memories wait equally long.
    assert not plan_weights(uses, FastWeights("dtcm", 1280, 1280, 0), memory).copied


def test_blocks_are_double_buffered() -> None:
    memory = ArenaMemory("dtcm", 64 * KIB, ".dtcm", 0, 0, 8192)
    uses = [use(0, 2048, 9000), use(2, 4096, 9000), use(3, 6144, 9000), use(4, 9000, 9000)]
    plan = plan_weights(uses, FastWeights("dtcm", 0, 8192, 3000), memory)
    found = [(block.step, block.parts[0][1], block.starts) for block in plan.blocks]
    assert found == [(0, 0, 0), (2, 2048, 0), (3, 0, 3)]


def test_no_block_is_overwritten_before_it_was_used() -> None:
    memory, random = ArenaMemory("dtcm", 64 * KIB, ".dtcm", 0, 0, 4096), np.random.default_rng(1)
    for _ in range(200):
        uses = [use(step, int(size), 1000) for step, size in enumerate(random.integers(1, 4500, 12)) if size % 3]
        blocks = plan_weights(uses, FastWeights("dtcm", 0, 4096, 3000), memory).blocks
        for before, block in pairwise(blocks):
            # It begins when the one before has arrived, and not after its own operator.
            assert before.step <= block.starts <= block.step
            (_, first), (_, second) = before.parts[0], block.parts[0]
            apart = first + before.size <= second or second + block.size <= first
            assert apart or block.starts > before.step
            assert second + block.size <= 4096


@pytest.mark.parametrize(
    "changes",
    [
        {"executor": "graph", "memories": ()},
        {"options": {"interface-api": "packed"}},
        {"options": {"parameters": "replaceable"}},
        {"options": {"hook": True}},
    ],
    ids=str,
)
def test_what_cannot_be_together_is_refused(shared: Path, changes: dict[str, Any]) -> None:
    with raises(UsageError, "weights-refused", at="net: weights"):
        compiled(shared / "models/ad_int8.tflite", 4 * KIB, 4 * KIB, **changes)


def test_room_for_blocks_counts(shared: Path) -> None:
    library = compiled(shared / "models/kws_int8.tflite", 0, 60 * KIB)
    network = library.modules[0].network
    assert network is not None
    sizes = {memory.name: memory.size for memory in network.memories}
    assert 60 * KIB < sizes["dtcm"] <= 64 * KIB and sizes["sram"]
