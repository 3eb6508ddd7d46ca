"""For each finding of ``validate``, an archive with only that flaw."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mlfbuild.library import ModuleTarget, OperatorBuffer, TensorInfo
from support.sound_archives import (
    BUNDLE,
    METADATA,
    NET_GRAPH,
    REGISTRY,
    TINY_HEADER,
    TINY_SOURCE,
    Files,
    defining,
    dependency,
    described,
    foreign,
    long_name,
    named,
    net,
    net_module,
    operator,
    packed,
    parameter_first,
    renamed,
    replaced,
    shared_storage,
    tiny,
    tiny_module,
    with_bundle,
    with_runtime,
    without,
)


class Flaw(NamedTuple):
    """The flaw of an archive."""

    code: str
    place: str
    files: Callable[[], Files]


_TINY, _NET = f"{METADATA}: modules.tiny", f"{METADATA}: modules.net"
_TINY_KEYS, _NET_KEYS = "modules.tiny", "modules.net"
_MAIN = "memory.functions.main"
_OPERATOR = "memory.functions.operator_functions"

OTHER_PARAMS = b'{"p0": {"dtype": "float32", "shape": [1, 2], "data": [2.0, 4.5]}}'
FLAWS = (
    # Files
    Flaw("MLF101", f"{METADATA}: model_name",
     lambda: without(operator(), *(f"codegen/host/src/lib{n}.c" for n in (0, 1)))),
    Flaw("MLF102", "codegen/host/src", lambda: {**tiny(), "codegen/host/src/tiny_lib2.c": b"typedef int none;\n"}),
    Flaw("MLF103", "src/tiny.relay", lambda: without(tiny(), "src/tiny.relay")),
    Flaw("MLF104", "parameters/other.params", lambda: {**tiny(), "parameters/other.params": b""}),
    Flaw("MLF105", "codegen/host/src/tiny_lib1.cc", lambda: {**tiny(), "codegen/host/src/tiny_lib1.cc": b"\n"}),
    Flaw("MLF106", "codegen/npu/src/tiny_lib0.c", lambda: {**tiny(), "codegen/npu/src/tiny_lib0.c": b"\n"}),
    Flaw("MLF107", "executor-config/graph/graph.json",
     lambda: renamed(net(), NET_GRAPH, "executor-config/graph/graph.json")),
    Flaw("MLF107", "codegen/host/src/lib1.c",
     lambda: renamed(net(), "codegen/host/src/net_lib1.c", "codegen/host/src/lib1.c")),
    Flaw("MLF107", "relay.txt", lambda: renamed(net(), "src/net.relay", "relay.txt")),
    Flaw("MLF108", "samples/x.h", lambda: {**tiny(), "samples/x.h": b""}),
    Flaw("MLF109", "src/tir-1.txt", lambda: operator(tir=())),
    Flaw("MLF109", "src/tir-1.txt", lambda: operator(targets=(ModuleTarget("c"), ModuleTarget("cmsis-nn")))),
    # Metadata
    Flaw("MLF201", f"{_TINY}.colour", lambda: described(tiny(), "modules.tiny.colour", "red")),
    Flaw("MLF201", f"{_TINY}.{_MAIN}[0].heap", lambda: described(tiny(), f"{_TINY_KEYS}.{_MAIN}.0.heap", 1)),
    Flaw("MLF202", f"{_TINY}.export_datetime", lambda: described(tiny(), "modules.tiny.export_datetime", ...)),
    Flaw("MLF203", f"{_TINY}.target", lambda: described(tiny(), "modules.tiny.target", {"1": "c"})),
    Flaw("MLF202", f"{_NET}.memory.sids", lambda: described(net(), "modules.net.memory.sids", ...)),
    Flaw("MLF204", f"{_TINY}.runtimes", lambda: described(tiny(), "modules.tiny.runtimes", ["aot"])),
    Flaw("MLF204", f"{_TINY}.memory.sids", lambda: described(tiny(), "modules.tiny.memory.sids", [])),
    Flaw("MLF205", f"{_TINY}.export_datetime",
     lambda: described(tiny(), "modules.tiny.export_datetime", "2024-02-30 12:00:00Z")),
    Flaw("MLF205", f"{_TINY}.export_datetime", lambda: described(tiny(), "modules.tiny.export_datetime", "yesterday")),
    Flaw("MLF206", f"{_NET}.export_datetime", lambda: net(export_datetime="2023-02-28 12:00:00Z")),
    Flaw("MLF207", f"{_NET}.export_datetime", lambda: net(export_datetime="2024-01-01 12:00:00Z")),
    Flaw("MLF208", f"{_TINY}.model_name", lambda: described(tiny(), "modules.tiny.model_name", "other")),
    Flaw("MLF209", f"{METADATA}: version", lambda: packed(net_module(), version=6)),
    Flaw("MLF210", f"{METADATA}: memory", lambda: operator(buffers=(OperatorBuffer("add", 2, (2,), "quux8"),))),
    Flaw("MLF211", f"{_NET}.{_MAIN}[0].device", lambda: described(net(), f"{_NET_KEYS}.{_MAIN}.0.device", 99)),
    # Names
    Flaw("MLF301", f"{METADATA}: modules.my-net.model_name", lambda: named("my-net")),
    Flaw("MLF302", f"{METADATA}: modules.Net.model_name", lambda: named("Net")),
    Flaw("MLF304", f"{TINY_HEADER}: struct tvmgen_tiny_inputs",
     lambda: replaced(tiny(), TINY_HEADER, "void* x;", "void* 2x;")),
    Flaw("MLF304", f"{TINY_HEADER}: struct tvmgen_tiny_outputs",
     lambda: replaced(tiny(), TINY_HEADER, "void* y;", "void* int;")),
    Flaw(
        "MLF305",
        f"{TINY_HEADER}: struct tvmgen_tiny_inputs",
        lambda: replaced(
            tiny(inputs=(TensorInfo("a-b", "int8", 2), TensorInfo("a_b", "int8", 2))),
            TINY_HEADER,
            "void* x;",
            "void* a_b; void* a_b;",
        ),
    ),
    Flaw(
        "MLF306",
        f"{TINY_HEADER}: TVMGEN_TINY_X_SIZE",
        lambda: replaced(
            defining([("X_SIZE", 4), ("X_SIZE", 4)], outputs=(TensorInfo("x", "int8", 4),)),
            TINY_HEADER,
            "void* y;",
            "void* x;",
        ),
    ),
    Flaw(
        "MLF307",
        f"{TINY_HEADER}: TVMGEN_TINY_WORKSPACE_SIZE",
        lambda: replaced(
            defining([("WORKSPACE_SIZE", 4), ("WORKSPACE_SIZE", 0)], inputs=(TensorInfo("workspace", "int8", 4),)),
            TINY_HEADER,
            "void* x;",
            "void* workspace;",
        ),
    ),
    # Memory
    Flaw("MLF401", f"{_NET}.memory.sids[2]",
     lambda: described(shared_storage(), "modules.net.memory.sids.2.size_bytes", 4)),
    Flaw("MLF402", f"{_NET}.memory.sids[2]", lambda: described(net(), "modules.net.memory.sids.2.size_bytes", 3)),
    Flaw("MLF403", f"{_NET}.memory.sids[2]", lambda: described(net(), "modules.net.memory.sids.2.input_binding", "x")),
    Flaw("MLF404", f"{_NET}.memory.sids", lambda: described(net(), "modules.net.memory.sids.2", ...)),
    Flaw("MLF404", f"{_NET}.memory.sids",
     lambda: described(net(), "modules.net.memory.sids.3", {"storage_id": 2, "size_bytes": 8})),
    Flaw(
        "MLF405",
        f"{_NET}.{_MAIN}",
        lambda: described(
            net(),
            f"{_NET_KEYS}.{_MAIN}.1",
            {"device": 1, "workspace_size_bytes": 0, "constants_size_bytes": 0, "io_size_bytes": 0},
        ),
    ),
    Flaw(
        "MLF406",
        f"{TINY_HEADER}: TVMGEN_TINY_WORKSPACE_SIZE",
        lambda: described(
            described(defining({"WORKSPACE_SIZE": 16}), f"{_TINY_KEYS}.{_MAIN}.0.workspace_size_bytes", 16),
            f"{_TINY_KEYS}.{_MAIN}.1",
            {"device": 12, "workspace_size_bytes": 8, "constants_size_bytes": 0, "io_size_bytes": 0},
        ),
    ),
    Flaw("MLF407", f"{TINY_HEADER}: TVMGEN_TINY_WORKSPACE_SIZE", lambda: defining({"WORKSPACE_SIZE": 16})),
    Flaw("MLF408", f"{TINY_HEADER}: TVMGEN_TINY_X_SIZE",
     lambda: with_runtime(defining({"X_SIZE": 140091232}, external_dependencies=(dependency("0.11.1"),)))),
    Flaw("MLF408", f"{TINY_HEADER}: TVMGEN_TINY_Y_SIZE",
     lambda: with_runtime(defining({"Y_SIZE": 1}, external_dependencies=(dependency("0.12.dev17+g1a2b3c"),)))),
    Flaw("MLF409", f"{TINY_HEADER}: TVMGEN_TINY_X_SIZE", lambda: defining({"X_SIZE": 5})),
    Flaw("MLF410", f"{METADATA}: memory", lambda: operator(buffers=(OperatorBuffer("add", 3, (2,), "int8"),))),
    Flaw("MLF411", f"{_NET}.{_OPERATOR}[0]",
     lambda: described(net(), f"{_NET_KEYS}.{_OPERATOR}.0.workspace.0.workspace_size_bytes", 8)),
    Flaw("MLF412", f"{_NET}.{_MAIN}[0].io_size_bytes",
     lambda: described(net(), f"{_NET_KEYS}.{_MAIN}.0.io_size_bytes", 4)),
    Flaw("MLF413", f"{_NET}.{_MAIN}[0].io_size_bytes",
     lambda: described(net(), f"{_NET_KEYS}.{_MAIN}.0.io_size_bytes", 17)),
    Flaw(
        "MLF414",
        f"{_TINY}.{_MAIN}[0].workspace_size_bytes",
        lambda: replaced(
            tiny(),
            TINY_SOURCE,
            "\n\nint32_t",
            '\n__attribute__((section(".bss.noinit.tvm"), aligned(16)))\nstatic uint8_t global_workspace[64];\nint32_t',
        ),
    ),
    # Graph
    Flaw("MLF501", f"{NET_GRAPH}: arg_nodes[1]",
     lambda: replaced(net(), NET_GRAPH, '"arg_nodes": [0, 1]', '"arg_nodes": [0, 9]' + " " * 17 * 1024 * 1024)),
    Flaw(
        "MLF502",
        f"{NET_GRAPH}: attrs.storage_scope",
        lambda: replaced(
            net(), NET_GRAPH, '"attrs": {\n', '"attrs": {"storage_scope": ["list_str", ["", "", "texture"]],\n'
        ),
    ),
    Flaw("MLF503", NET_GRAPH, parameter_first),
    Flaw("MLF504", f"{_NET}.executors", lambda: {**net(), "codegen/host/src/net_lib0.c": b";"}),
    Flaw("MLF505", NET_GRAPH, lambda: replaced(net(), NET_GRAPH, '"tvmgen_net_add"', '"tvmgen_net_sub"')),
    Flaw("MLF506", f"{_NET}.{_MAIN}[0].outputs",
     lambda: described(foreign(net()), f"{_NET_KEYS}.{_MAIN}.0.outputs", {"output": {"dtype": "int32", "size": 8}})),
    Flaw("MLF507", NET_GRAPH, lambda: net(params={})),
    Flaw("MLF508", NET_GRAPH,
     lambda: replaced(net(), "codegen/host/src/net_lib0.c", "\\000tvmgen_net_add", "\\000tvmgen_net_ad")),
    # Parameters
    Flaw("MLF601", "parameters/net.params: p1",
     lambda: net(params={"p0": np.array([[2.0, 4.0]], dtype=np.float32), "p1": np.zeros(1, np.int8)})),
    Flaw("MLF602", "parameters/net.params: p0", lambda: net(params={"p0": np.array([[2, 4]], dtype=np.int32)})),
    Flaw("MLF602", "parameters/net.params: p0", lambda: net(params={"p0": np.array([2, 4], dtype=np.float32)})),
    Flaw("MLF603", "parameters/net.params: " + "p" * 80, long_name),
    Flaw("MLF604", "parameters/net.json: p0", lambda: {**net(), "parameters/net.json": OTHER_PARAMS}),
    Flaw("MLF604", "parameters/net.json", lambda: {**net(), "parameters/net.json": b"[]"}),
    # Code
    Flaw("MLF701", TINY_SOURCE, lambda: replaced(tiny(), TINY_SOURCE, "tvmgen_tiny.h", "tvmgen_Tiny.h")),
    Flaw("MLF702", f"{TINY_SOURCE}: tvmgen_tiny_run",
     lambda: {**tiny(), TINY_SOURCE: REGISTRY.format(function="tvmgen_tiny_run").encode()[:-1] + tiny()[TINY_SOURCE]}),
    Flaw(
        "MLF702",
        "codegen/host/src/net_lib0.c: tvmgen_net_add",
        lambda: replaced(
            net(),
            "codegen/host/src/net_lib0.c",
            "static const TVMModule",
            "int32_t tvmgen_net_add(void*, void* codes, int count, void* value, void* code);\nstatic const TVMModule",
        ),
    ),
    Flaw("MLF703", "codegen/host/src/other_lib0.c: TVMSystemLibEntryPoint",
     lambda: packed(net_module(), net_module("other"))),
    Flaw(
        "MLF704",
        "codegen/host/src/b_lib0.c: __tvm_module_ctx",
        lambda: {
            path: content + b"void* __tvm_module_ctx = 0;\n" if path.endswith("_lib0.c") else content
            for path, content in tiny("a", "b").items()
        },
    ),
    Flaw("MLF705", "codegen/host/src/tiny_lib1.c: tvmgen_tiny_run",
     lambda: {**tiny(), "codegen/host/src/tiny_lib1.c": b"int tvmgen_tiny_run(void) { return 1; }\n"}),
    Flaw(
        "MLF706",
        "codegen/host/src/b_lib1.c: tvmgen_default_cmsis_nn_main_0",
        lambda: {
            **tiny("a", "b"),
            **{
                f"codegen/host/src/{name}_lib1.c": b"int tvmgen_default_cmsis_nn_main_0(void) { return 0; }\n"
                for name in "ab"
            },
        },
    ),
    Flaw(
        "MLF707",
        "codegen/host/src/net_lib0.c: tvmgen_net_sub",
        lambda: replaced(
            replaced(net(), "codegen/host/src/net_lib0.c", "tvmgen_net_add", "tvmgen_net_sub"),
            "codegen/host/src/net_lib0.c",
            "\\000tvmgen_net_sub",
            "\\000tvmgen_net_add",
        ),
    ),
    Flaw("MLF708", "codegen/host/src/net_lib0.c: _tvm_func_registry",
     lambda: replaced(net(), "codegen/host/src/net_lib0.c", "\\001\\000", "\\002\\000")),
    Flaw("MLF709", f"{_TINY}.executors",
     lambda: replaced(tiny(), TINY_SOURCE, "int32_t tvmgen_tiny_run", "static int32_t run")),
    Flaw("MLF710", f"{_NET}.{_OPERATOR}[0]",
     lambda: described(net(), f"{_NET_KEYS}.{_OPERATOR}.0.function_name", "tvmgen_net_sub")),
    Flaw("MLF711", f"{TINY_HEADER}: struct tvmgen_tiny_inputs",
     lambda: foreign(replaced(tiny(), TINY_HEADER, "void* x;", "void* z;"))),
    Flaw("MLF712", "codegen/host/lib/tiny_lib0.o",
     lambda: {**tiny(), "codegen/host/lib/tiny_lib0.o": b"\xcf\xfa\xed\xfe"}),
    Flaw("MLF713", TINY_SOURCE,
     lambda: replaced(tiny(), TINY_SOURCE, "#include", "#include <arm_nnfunctions.h>\n#include")),
    Flaw(
        "MLF714",
        f"{TINY_SOURCE}: tvmgen_tiny___tvm_main__",
        lambda: replaced(
            tiny(),
            TINY_SOURCE,
            "int32_t tvmgen_tiny_run",
            "int tvmgen_tiny___tvm_main__(void);\nint32_t tvmgen_tiny_run",
        ),
    ),
    # External dependencies
    Flaw("MLF801", f"{_TINY}.external_dependencies[0]",
     lambda: tiny(external_dependencies=(dependency("", "https://example.org/x.git", "git"),))),
    Flaw("MLF802", f"{_TINY}.external_dependencies[0]", lambda: tiny(external_dependencies=(dependency(),))),
    Flaw(
        "MLF803",
        f"{METADATA}: modules.b.external_dependencies[0]",
        lambda: with_runtime(
            packed(*(tiny_module(name, external_dependencies=(dependency(name),)) for name in ("a", "b")))
        ),
    ),
    Flaw("MLF803", f"{_TINY}.external_dependencies[1]",
     lambda: with_runtime(tiny(external_dependencies=(dependency("a"), dependency("b"))))),
    Flaw("MLF804", "runtime", lambda: with_runtime(tiny())),
    Flaw("MLF806", f"{_TINY}.external_dependencies[1]",
     lambda: with_runtime(tiny(external_dependencies=(dependency(), dependency())))),
    Flaw("MLF805", BUNDLE, lambda: {**with_bundle(tiny_module()), BUNDLE: b"{}"}),
)  # fmt: skip
"""One archive per finding; ``MLF303`` never occurs alone, because one of two such names has upper-case letters."""
