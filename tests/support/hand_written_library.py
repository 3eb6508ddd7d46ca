"""Small hand-written libraries: a correct one, and variants with one mistake."""

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from mlfbuild.core.files import write_if_changed
from mlfbuild.library import CodegenFile, MainMemory, Module, ModuleTarget, TensorInfo

ARENA = 48

HEADER = """\
#ifndef TVMGEN_NET_H_
#define TVMGEN_NET_H_
#include <stdint.h>
struct tvmgen_net_inputs { void *a; void *b; };
struct tvmgen_net_outputs { void *sum; void *mean; };
int32_t tvmgen_net_run(struct tvmgen_net_inputs *inputs, struct tvmgen_net_outputs *outputs);
#define TVMGEN_NET_WORKSPACE_SIZE 64
%s
#endif
"""
REENTRANT = """\
int32_t mlf_net_run(const struct tvmgen_net_inputs *inputs, const struct tvmgen_net_outputs *outputs, void *workspace);
"""
SOURCE = """\
#include "tvmgen_net.h"
#include <string.h>

/* sum = a + b (4 x int8), mean = half of the sums (2 x float, of elements 0 and 3) */
static int32_t run(signed char *a, const signed char *b, signed char *sum, float *mean, unsigned char *workspace)
{
    static volatile int runs;
    runs = runs + 1;
    memcpy(workspace, a, 4);
    memset(workspace + 40, 1, 8);
    for (int i = 0; i < 4; i++) {
        sum[i] = (signed char)(workspace[i] + b[i]);
    }
    mean[0] = (float)sum[0] / 2.0f;
    mean[1] = (float)sum[3] / 2.0f;
    %s
    return 0;
}

int32_t tvmgen_net_run(struct tvmgen_net_inputs *inputs, struct tvmgen_net_outputs *outputs)
{
    static unsigned char workspace[64];
    return run(inputs->a, inputs->b, outputs->sum, outputs->mean, workspace);
}
"""
REENTRANT_SOURCE = """\
int32_t mlf_net_run(const struct tvmgen_net_inputs *inputs, const struct tvmgen_net_outputs *outputs, void *workspace)
{
    return run(inputs->a, inputs->b, outputs->sum, outputs->mean, workspace);
}
"""
FRAGMENT = """\
add_library(mlf_net STATIC "${CMAKE_CURRENT_LIST_DIR}/net_lib0.c")
add_library(mlf::net ALIAS mlf_net)
target_include_directories(mlf_net PUBLIC "${CMAKE_CURRENT_LIST_DIR}")
"""

INPUTS = (TensorInfo("a", "int8", 4, (1, 4)), TensorInfo("b", "int8", 4, (1, 4)))
OUTPUTS = (TensorInfo("sum", "int8", 4, (1, 4)), TensorInfo("mean", "float32", 8, (1, 2)))


def write_library(
    tree: Path, wrong: str = "", *, reentrant: bool = True, outputs: Sequence[TensorInfo] = OUTPUTS
) -> Module:
    """Write the unpacked tree of ``net`` with the statement ``wrong`` at the end of each run; return the module."""
    header = HEADER % (REENTRANT if reentrant else "")
    source = SOURCE % wrong + (REENTRANT_SOURCE if reentrant else "")
    for name, text in {"tvmgen_net.h": header, "net_lib0.c": source, "mlf.cmake": FRAGMENT}.items():
        write_if_changed(tree / name, text.encode())
    return Module(
        name="net",
        executor="aot",
        targets=(ModuleTarget("c"),),
        main=(MainMemory(64, 0, 20),),
        inputs=INPUTS,
        outputs=tuple(outputs),
        interface="c",
        operator_functions=(),
        codegen=(
            CodegenFile(PurePosixPath("host/include/tvmgen_net.h"), header.encode()),
            CodegenFile(PurePosixPath("host/src/net_lib0.c"), source.encode()),
        ),
    )
