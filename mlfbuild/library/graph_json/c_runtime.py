"""Find the reasons why TVM's C runtime cannot load or run a valid graph.

Its reader (``src/runtime/crt/graph_executor``) copies strings into buffers of fixed size, loses one byte of each, and
continues in the middle of a string that is too long. The sizes are those in TVM's ``crt_config.h``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from mlfbuild.core import quoted, shown
from mlfbuild.library.data_type import parse_dtype
from mlfbuild.library.graph_json.executor_graph import CALL, ExecutorGraph, GraphNode

# Strings in the JSON lose two bytes of their buffer: the terminating zero, and the one that the reader drops.
_MAX_KEY = 20 - 2
_MAX_ATTR = 16 - 2  # names of attributes of the graph, and their tags
_MAX_NAME = 120 - 2  # TVM_CRT_MAX_STRLEN_FUNCTION_NAME
_MAX_DTYPE = 10 - 2  # TVM_CRT_MAX_STRLEN_DLTYPE
MAX_PARAM_NAME = 80 - 1  # TVM_CRT_MAX_STRLEN_PARAM_NAME
_MAX_ARGS = 10  # TVM_CRT_MAX_ARGS; the runtime accepts fewer than this
MAX_NDIM = 6  # TVM_CRTMAX_NDIM
_MAX_UINT32 = 2**32 - 1
_ESCAPED = frozenset('\r\n\\\t"')
_CODES = {"int", "uint", "float", "bfloat", "handle"}


def c_runtime_problems(graph: ExecutorGraph) -> list[str]:
    """Return the reasons why TVM's C runtime does not load or run ``graph``, each as ``<place>: <reason>``.

    Places are those in the graph's JSON, such as ``nodes[2].attrs.func_name``. An empty list does not mean that the
    code of the functions exists.
    """
    return [*_members(graph), *_nodes(graph), *_entries(graph)]


def _members(graph: ExecutorGraph) -> Iterator[str]:
    for name, _ in graph.others:
        if name != "metadata":  # the reader stops there
            yield f"{shown(name)}: the C runtime refuses unknown members"
    if graph.storage_scope is not None:
        yield "attrs.storage_scope: the C runtime refuses attributes of type list_str other than dltype"
    for name, text in graph.other_attrs:
        if len(name.encode()) > _MAX_ATTR:
            yield f"attrs.{shown(name)}: the name is longer than {_MAX_ATTR} bytes, the limit of the C runtime"
        # The text of an attribute is a JSON list of its tag and its value.
        if json.loads(text)[0] not in {"list_int", "size_t"}:
            yield f"attrs.{shown(name)}: the C runtime skips only attributes of type list_int and size_t"
    if graph.device_index is not None and len(set(graph.device_index)) > 1:
        yield "attrs.device_index: has several devices, the C runtime supports one"


def _nodes(graph: ExecutorGraph) -> Iterator[str]:
    for index, node in enumerate(graph.nodes):
        at = f"nodes[{index}]"
        if node.control_deps:
            yield f"{at}.control_deps: the C runtime refuses this member"
        yield from (f"{at}.{shown(name)}: the C runtime refuses unknown members" for name, _ in node.others)
        yield from _strings(node, at)
        if node.op == CALL:
            yield from _call(node, at)


def _strings(node: GraphNode, at: str) -> Iterator[str]:
    strings = {f"{at}.name": node.name, **{f"{at}.attrs.{shown(name)}": value for name, value in node.attrs}}
    for place, text in strings.items():
        if len(text.encode()) > _MAX_NAME:
            yield f"{place}: has {len(text.encode())} bytes, more than {_MAX_NAME}, the limit of the C runtime"
    for name, _ in node.attrs:
        if len(name.encode()) > _MAX_KEY:
            yield f"{at}.attrs.{shown(name)}: the name is longer than {_MAX_KEY} bytes, the limit of the C runtime"
    for text in (*strings.values(), *(name for name, _ in node.attrs)):
        if _ESCAPED.intersection(text):
            yield f"{at}: {quoted(text)} needs an escape, and the C runtime writes to a null pointer when it reads one"


def _call(node: GraphNode, at: str) -> Iterator[str]:
    arguments = len(node.inputs) + int(node.attr("num_outputs") or 0)
    if arguments >= _MAX_ARGS:
        yield f"{at}: has {arguments} inputs and outputs, the C runtime accepts fewer than {_MAX_ARGS}"
    if node.function in {"__nop", "__copy"}:
        yield f"{at}.attrs.func_name: the C runtime does not support {node.function}"


def _entries(graph: ExecutorGraph) -> Iterator[str]:
    for entry, (shape, dtype) in enumerate(zip(graph.shape, graph.dltype, strict=True)):
        at = f"attrs.shape[{entry}]"
        if not shape:
            yield f"{at}: is a scalar, which the C runtime reads as a dimension of unknown size"
        if len(shape) > MAX_NDIM:
            yield f"{at}: has {len(shape)} dimensions, the C runtime accepts at most {MAX_NDIM}"
        if 0 in shape:
            yield f"{at}: has an extent of 0, for which the C runtime computes a wrong size"
        elif graph.tensor(entry, "").size > _MAX_UINT32:
            yield f"{at}: has more bytes than the 32-bit size of the C runtime can count"
        if not _knows(dtype):
            yield f"attrs.dltype[{entry}]: the C runtime does not know {quoted(dtype)}"
    for entry, storage in enumerate(graph.storage_id):
        if storage >= len(graph.nodes):
            yield f"attrs.storage_id[{entry}]: is {storage}, the C runtime has room for one per node"
    for index, head in enumerate(graph.heads):
        found = parse_dtype(graph.dltype[graph.entry(head)])
        if found is not None and found.bits % 8:
            yield f"heads[{index}]: has elements of {found.bits} bits, but the C runtime copies only whole bytes"


def _knows(dtype: str) -> bool:
    found = parse_dtype(dtype)
    fits = len(dtype.encode()) <= _MAX_DTYPE and not _ESCAPED.intersection(dtype)
    return found is not None and found.code in _CODES and fits
