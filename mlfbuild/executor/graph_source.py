"""Print the static executor of a graph: constant tables for ``mlf_executor.h``, and the functions firmware calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mlfbuild.core import lazy_module
from mlfbuild.executor.entry import print_begin, print_run, workspace_header
from mlfbuild.executor.graph_plan import COPY, Area, GraphPlan, PackedCall, PlannedTensor
from mlfbuild.executor.pools import PlacedPools
from mlfbuild.executor.runtime import RUNTIME_NAME
from mlfbuild.executor.static_memory import StaticMemory
from mlfbuild.library import (
    C_TYPES,
    CODE_NAMES,
    Array,
    CInterface,
    HookedOperator,
    NetworkOperator,
    parse_dtype,
    print_operators,
    struct_prefix,
)
from mlfbuild.library.cgen import (
    ALIGNMENT,
    PARAMS_SECTION,
    SCRATCH_TYPES,
    array_lines,
    comment_text,
    integer,
    record_lines,
)
from mlfbuild.library.keys import Placement

if TYPE_CHECKING:
    import numpy as np
else:
    np = lazy_module("numpy")

_CODES = {name: code for code, name in CODE_NAMES.items()}


@dataclass(frozen=True)
class RunFunction:
    """A function that firmware calls: it makes some of the plan's calls in order.

    ``first`` is the position of the first of them in the plan, and ``count`` their number.
    """

    interface: CInterface
    first: int
    count: int


@dataclass(frozen=True)
class GraphSource:
    """The content of the file of a static executor."""

    module: str
    """The suffix of the runtime's names."""
    entries: tuple[RunFunction, ...]
    plan: GraphPlan
    params: Mapping[str, Array]
    """Argument of the graph -> its value."""
    kernel_workspace: int
    """Peak bytes that kernels allocate with ``TVMBackendAllocWorkspace``."""
    bundled: bool = False
    """Whether kernels call the archive's own runtime."""
    placement: Placement = field(default_factory=Placement)
    """Sections of the parameters and of the static workspace, or whether that is shared."""
    pools: tuple[PlacedPools, ...] = ()
    """The pools of the module's code that are in the shared workspace."""
    appended: int = 0
    """Arguments that a packed entry appends for its pools, with type codes that it expects of its caller."""
    hooked: str = ""
    """The name in C of the module whose runs call a hook before each call; empty without hooks."""
    operators: tuple[NetworkOperator, ...] = ()
    """The operators of the model that the calls compute, if the archive lists them."""
    identity: str = ""
    """The definition of the module's id; empty if it has none."""
    read_identity: Sequence[str] = ()
    """The statements that keep the id in the image."""

    @property
    def memory(self) -> StaticMemory:
        """The static workspace: storage, then the workspace of kernels."""
        size = self.plan.storage_size + self.kernel_workspace
        return StaticMemory(struct_prefix(self.module), size, self.placement, self._types, self.pools)

    @property
    def _types(self) -> frozenset[str]:
        """The C types of what the static workspace holds."""
        tensors = (tensor for call in self.plan.calls for tensor in call.tensors)
        names = {self.plan.graph.dltype[each.entry] for each in tensors if each.place.area is Area.STORAGE}
        stored = frozenset(C_TYPES[name] for name in names if name in C_TYPES)
        return stored | SCRATCH_TYPES if self.kernel_workspace or self.pools else stored


def print_graph(source: GraphSource, preamble: str) -> str:
    """Return the text of the C file.

    ``preamble`` is the comment at the beginning of the file. The text has the tables of calls, tensors and arguments,
    the parameters as arrays, the static workspace and one run function for each entry of ``source``.
    """
    tensors, memory = _distinct(source.plan.calls), source.memory
    parts = [
        preamble,
        f"#define MLF_MODULE {source.module}",
        "\n".join(_includes(source)),
        "\n".join(_prototypes(source.plan)),
        source.identity,
        *_parameters(source),
        *_shapes(source.plan, tensors),
        *_tables(source, tensors),
        print_operators(source.hooked, list(_operators(source))) if source.hooked else "",
        memory.definition(),
        *(print_run(entry.interface, list(_body(source, entry)), memory, _hook(source)) for entry in source.entries),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _hook(source: GraphSource) -> str:
    """Return the C type of hooks; empty without hooks."""
    return f"mlf_{source.hooked}_hook" if source.hooked else ""


def _operators(source: GraphSource) -> Iterator[HookedOperator]:
    """Yield the table entry of each call: its name and operator in the model, or else in the graph."""
    functions = [call.function for call in source.plan.calls if call.function is not None]
    known = iter(source.operators if [each.function for each in source.operators] == functions else ())
    for call in source.plan.calls:
        operator = next(known, None) if call.function is not None else None
        name, kind = (call.name, call.function or COPY) if operator is None else (operator.name, operator.operator)
        yield HookedOperator(comment_text(name), comment_text(kind))


def _distinct(calls: Sequence[PackedCall]) -> dict[PlannedTensor, int]:
    """Return the number in the table of every tensor in ``calls``."""
    tensors = dict.fromkeys(tensor for call in calls for tensor in call.tensors)
    return {tensor: index for index, tensor in enumerate(tensors)}


def _includes(source: GraphSource) -> Iterator[str]:
    most = max((len(call.tensors) for call in source.plan.calls), default=1) + source.appended
    yield from (f'#include "{entry.interface.prefix}.h"' for entry in source.entries)
    yield ""
    yield f"#define MLF_MOST_ARGUMENTS {most}"
    if source.hooked:
        yield "#define MLF_HOOKED"
    linked = ["mlf_linked.h"] if source.plan.linked else []
    if any(param.dtype.kind == "f" and not np.isfinite(param).all() for param in source.params.values()):
        yield "#include <math.h>"  # INFINITY and NAN
    headers = ("mlf_executor.h", workspace_header(bundled=source.bundled), *linked)
    yield from (f'#include "{RUNTIME_NAME}/{header}"' for header in headers)


def _prototypes(plan: GraphPlan) -> Iterator[str]:
    for name in plan.functions:
        yield f"mlf_packed {name};"


def _parameters(source: GraphSource) -> Iterator[str]:
    graph = source.plan.graph
    names = {graph.node_row_ptr[node]: graph.nodes[node].name for node in graph.arg_nodes}
    for entry in source.plan.parameters:
        param = source.params[names[entry]]
        section, values = source.placement.constants(class_of(param)) or PARAMS_SECTION, _numbers(param)
        yield "\n".join(
            [
                f'__attribute__((section("{section}"), aligned({ALIGNMENT})))',
                f"static const {C_TYPES[values.dtype.name]} {parameter_name(entry)}[{values.size}] = {{",
                *_value_lines(values),
                "};",
            ]
        )


def parameter_name(entry: int) -> str:
    """Return the name in C of the constant for the parameter at ``entry`` of the graph.

    The entry is the position of the tensor in the graph's ``node_row_ptr`` order, so that the name is the same in the C
    file and in the memory report.
    """
    return f"mlf_parameter_{entry}"


def class_of(param: Array) -> str:
    """Return ``weights``, or ``biases`` for a parameter with at most one axis longer than 1.

    The classes are those of ``Placement.constants``: a project can put each of them into a section of its own.
    """
    return "weights" if sum(length > 1 for length in param.shape) > 1 else "biases"


def _value_lines(values: Array) -> Iterator[str]:
    if values.dtype == np.float64:
        return record_lines([repr(value) for value in values.reshape(-1).tolist()], 4)
    return array_lines(values)


def _numbers(values: Array) -> Array:
    """Return ``values`` with a type that exists in C: other types become unsigned integers with the same bytes."""
    values = np.ascontiguousarray(values.astype(values.dtype.newbyteorder("="), copy=False))
    if values.dtype == np.bool_ or values.dtype.name not in C_TYPES:
        return values.view(f"uint{8 * values.dtype.itemsize}")
    return values


def _shapes(plan: GraphPlan, tensors: Mapping[PlannedTensor, int]) -> Iterator[str]:
    shapes = sorted({plan.graph.shape[tensor.entry] for tensor in tensors})
    for shape in shapes:
        if shape:
            sizes = ", ".join(integer(size) for size in shape)
            yield f"static const int64_t {_shape_name(shape)}[{len(shape)}] = {{{sizes}}};"


def _shape_name(shape: Sequence[int]) -> str:
    return f"mlf_shape_{'x'.join(str(size) for size in shape)}" if shape else "NULL"


def _tables(source: GraphSource, tensors: Mapping[PlannedTensor, int]) -> Iterator[str]:
    graph = source.plan.graph
    rows = [f"    {_tensor_row(tensor, graph.shape[tensor.entry], graph.dltype[tensor.entry])}," for tensor in tensors]
    yield "\n".join(["static const struct mlf_tensor mlf_tensors[] = {", *rows, "};"])
    arguments = [tensors[tensor] for call in source.plan.calls for tensor in call.tensors]
    yield "\n".join(
        ["static const mlf_argument mlf_arguments[] = {", *array_lines(np.array(arguments, np.uint16)), "};"]
    )
    yield "\n".join(["static const struct mlf_call mlf_calls[] = {", *_call_rows(source.plan), "};"])


def _tensor_row(tensor: PlannedTensor, shape: tuple[int, ...], dtype: str) -> str:
    kind = parse_dtype(dtype)
    assert kind is not None  # the graph's reader has checked it
    constant = tensor.place.area is Area.CONSTANT
    data, position = (parameter_name(tensor.place.position), 0) if constant else ("NULL", tensor.place.position)
    # 3 is DLPack's opaque handle (kDLOpaqueHandle), for types that have no code in it.
    types = f"{{{_CODES.get(kind.code, 3)}, {kind.bits}, {kind.lanes}}}"
    return f"{{{data}, {_shape_name(shape)}, {position}, {types}, MLF_{tensor.place.area.name}, {len(shape)}}}"


def _call_rows(plan: GraphPlan) -> Iterator[str]:
    first = 0
    for call in plan.calls:
        count = len(call.tensors)
        # mlf_executor.h copies that many bytes for a call without a function, in place of the number of arguments.
        if call.function is None:
            count = plan.graph.tensor(call.tensors[0].entry, "").size
        yield f"    {{{call.function or 'NULL'}, {first}, {count}}},"
        first += len(call.tensors)


def _body(source: GraphSource, entry: RunFunction) -> Iterator[str]:
    interface, plan = entry.interface, source.plan
    linked = [f"mlf_linked_parameter({plan.graph.storage_id[parameter]})" for parameter in plan.linked]
    for kind, members, more in (("inputs", interface.inputs, linked), ("outputs", interface.outputs, [])):
        pointers = ", ".join([*(f"{kind}->{member.name}" for member in members), *more]) or "NULL"
        yield f"    void *const {kind}_in_order[] = {{{pointers}}};"
    storage = source.memory.at(0) if plan.storage_size else "NULL"
    hook = ", hook, context" if source.hooked else ""
    yield f"    const struct mlf_run run = {{inputs_in_order, outputs_in_order, {storage}{hook}}};"
    yield ""
    if linked:
        at = len(interface.inputs)
        yield f"    if (mlf_any_missing(&inputs_in_order[{at}], {len(linked)})) {{"
        yield "        return -1;"
        yield "    }"
    yield from print_begin(source.memory, plan.storage_size, source.kernel_workspace, bundled=source.bundled)
    yield from source.read_identity
    calls = f"mlf_calls + {entry.first}" if entry.first else "mlf_calls"
    yield f"    return mlf_execute(mlf_tensors, mlf_arguments, {calls}, {entry.count}, &run);"
