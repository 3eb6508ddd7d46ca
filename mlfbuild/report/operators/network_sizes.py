"""Flash of a model by operator, with the attributes of operators and the quantisation of tensors.

An operator owns the functions and constants that its call names, and the functions that those call: parts of kernels
that the C compiler did not inline. Shared functions and constants are counted for the first operator that uses them.
The rest belongs to no operator: the run function, the executor's tables, the model's id.

Archives do not record attributes, because builds do not need them. They are read from the model's file again, and
belong to the operators and tensors of the archive that have the same names. A chain of operators has the attributes of
each.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mlfbuild.core import MlfError
from mlfbuild.jobs import CompileJob
from mlfbuild.library import Network, NetworkOperator, NetworkScratch, NetworkTensor, operator_plan
from mlfbuild.native import Graph, Node, Tensor, read_network
from mlfbuild.report.operators.arenas import arenas_json
from mlfbuild.report.operators.cycles import sum_of_cycles
from mlfbuild.report.sizes.owners import FLASH_KINDS, TABLES, Owner, SizedSymbol

if TYPE_CHECKING:
    from mlfbuild.report.operators.operator_runs import ModelRun, OperatorRun
    from mlfbuild.report.operators.profile import Profile
    from mlfbuild.timing import CycleCount
    from mlfbuild.verify import Spread

_MODEL_FILES = {".tflite", ".onnx"}
_ESTIMATES = {"accesses", "saved"}
_ROLES = ("input", "weights", "bias")


@dataclass(frozen=True)
class SourceFacts:
    """Facts of a model's file as JSON values, by name."""

    nodes: Mapping[str, Mapping[str, Any]]
    tensors: Mapping[str, Mapping[str, Any]]

    def of_operator(self, name: str) -> list[Mapping[str, Any]]:
        """Return the nodes of an operator, which may be a chain: its name joins theirs."""
        return [self.nodes[part] for part in name.split(" + ") if part in self.nodes]


def source_facts(job: CompileJob) -> SourceFacts:
    """Return the facts of the model's file; none if the source is an archive or cannot be read any more.

    Reads and parses the model again, which takes as long as the front end of the compiler does. Nothing is raised:
    a report is complete without these facts.
    """
    source = job.request.source
    if source.suffix.lower() in _MODEL_FILES:
        # The report is complete without these facts, and the model file may be gone.
        with contextlib.suppress(MlfError):
            graph, _ = read_network(job.request)
            nodes = {node.name: _node(graph, node) for node in graph.nodes}
            tensors = {name: _quantization(graph.tensor(name)) for name in graph.tensors}
            return SourceFacts(nodes, {name: facts for name, facts in tensors.items() if facts})
    return SourceFacts({}, {})


def _node(graph: Graph, node: Node) -> dict[str, Any]:
    inputs = graph.inputs_of(node).present
    tensors = [*_operands(inputs), *(("output", tensor) for tensor in graph.outputs_of(node))]
    return {
        "name": node.name,
        "operator": node.operator.name,
        "attributes": dict(_attributes(node, inputs)),
        "tensors": [
            {"role": role, "name": tensor.name, "dtype": tensor.dtype.value, **_quantization(tensor)}
            for role, tensor in tensors
        ],
    }


def _operands(inputs: Sequence[Tensor]) -> Iterator[tuple[str, Tensor]]:
    for index, tensor in enumerate(inputs):
        yield (_ROLES[index] if tensor.constant and index < len(_ROLES) else "input"), tensor


def _attributes(node: Node, inputs: Sequence[Tensor]) -> Iterator[tuple[str, Any]]:
    """Yield the attributes that have a value; a filter's size comes from its weights."""
    fields = {field.name: getattr(node.operator, field.name) for field in dataclasses.fields(node.operator)}
    kernel = fields.pop("filter", None)
    if kernel is None and "stride" in fields and len(inputs) > 1 and len(inputs[1].shape) == 4:
        kernel = inputs[1].shape[1:3]
    if kernel is not None:
        yield "kernel", list(kernel)
    for name, value in fields.items():
        shown = _json(value)
        if shown is not None and shown is not False:
            yield name, shown


def _json(value: Any) -> Any:
    """Return a number, a text or nested lists of them; ``None`` for other values, such as tables."""
    if isinstance(value, enum.Enum):
        return value.name.lower()
    if isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (tuple, list)):
        parts = [_json(part) for part in value]
        return None if None in parts else parts
    return None


def _quantization(tensor: Tensor) -> dict[str, Any]:
    """Return the least and the greatest scale and zero point, and the number of channels."""
    found = tensor.quantization
    if found is None:
        return {}
    return {
        "scale": [min(found.scales), max(found.scales)],
        "zero_point": [min(found.zero_points), max(found.zero_points)],
        "channels": len(found.scales),
    }


@dataclass(frozen=True)
class FlashPart:
    """A part of a model's flash."""

    pieces: tuple[SizedSymbol, ...]

    def of_kind(self, kind: str) -> int:
        """Return the bytes of flash of one of ``FLASH_KINDS``; initial values of variables count as tables."""
        kinds = (piece.kind if piece.kind in FLASH_KINDS else TABLES for piece in self.pieces)
        return sum(piece.size for piece, own in zip(self.pieces, kinds, strict=True) if own == kind)

    @property
    def kinds(self) -> dict[str, int]:
        """The bytes of each of ``FLASH_KINDS``."""
        return {kind: self.of_kind(kind) for kind in FLASH_KINDS}


@dataclass(frozen=True)
class NetworkSizes:
    """A module in an image: the flash of each operator, and the rest."""

    module: str
    executor: str
    network: Network
    """The operators and tensors that the compiler planned."""
    parts: tuple[FlashPart, ...]
    """The flash of each operator, in the network's order."""
    rest: FlashPart
    """The flash of no operator, such as the run function."""


def network_sizes(
    module: str, executor: str, network: Network, owner: Owner, calls: Mapping[int, Collection[int]]
) -> NetworkSizes:
    """Return the flash of ``module``, whose symbols ``owner`` has, by operator of ``network``.

    ``calls`` has the addresses that each function calls, by its address.
    """
    own: dict[str, list[SizedSymbol]] = defaultdict(list)
    for piece in owner.pieces:
        if piece.flash and piece.module == module:
            own[piece.name].append(piece)
    named = [
        [piece for name in (operator.function, *operator.symbols) for piece in own.pop(name, ())]
        for operator in network.operators
    ]
    functions = {piece.address: name for name, pieces in own.items() for piece in pieces if piece.address is not None}
    # In the order of execution, so that what two operators share counts for the first: the sum is then that of the
    # image.
    for pieces in named:
        waiting = _addresses(pieces)
        while waiting:
            # Sorted, so that the report does not depend on the order of a set.
            for address in sorted(calls.get(waiting.pop(), ())):
                called = own.pop(functions.get(address, ""), [])
                pieces.extend(called)
                waiting.extend(_addresses(called))
    rest = FlashPart(tuple(piece for pieces in own.values() for piece in pieces))
    return NetworkSizes(module, executor, network, tuple(FlashPart(tuple(pieces)) for pieces in named), rest)


def _addresses(pieces: Iterable[SizedSymbol]) -> list[int]:
    return [piece.address for piece in pieces if piece.address is not None]


def network_json(sizes: NetworkSizes, run: ModelRun | None = None, facts: SourceFacts | None = None) -> dict[str, Any]:
    """Return ``sizes`` as JSON values, with the instructions of a ``run`` of the module if there is one.

    ``facts`` are those of the model's file, by the names of its operators.
    """
    network = sizes.network
    runs = {each.number: each for each in run.operators if each.number is not None} if run else {}
    return {
        "module": sizes.module,
        "executor": sizes.executor,
        "arena": network.arena,
        **arenas_json(network),
        "tensors": [{**_placed_json(tensor), "shape": list(tensor.shape)} for tensor in network.tensors],
        "operators": [
            {
                **_operator_json(operator, part),
                **_counts_json(operator, runs.get(number), counted=bool(runs)),
                **({"nodes": nodes} if facts and (nodes := facts.of_operator(operator.name)) else {}),
            }
            for number, (operator, part) in enumerate(zip(network.operators, sizes.parts, strict=True))
        ],
        "rest": sizes.rest.kinds,
        **({"profile": _profile_json(run)} if run else {}),
    }


def _profile_json(run: ModelRun) -> dict[str, Any]:
    profile = run.profile
    operators = sum(each.instructions for each in run.operators if each.number is not None)
    unknown = [each.cycles for each in run.operators if each.number is None]
    return {
        "board": profile.board,
        "inputs": run.inputs,
        "instructions": profile.instructions,
        "rest": profile.instructions - operators,
        **modelled_json(profile, sum_of_cycles([profile.rest_cycles, *unknown])),
        **measured_json(run),
    }


def modelled_json(profile: Profile, rest: CycleCount | None) -> dict[str, Any]:
    """Return the modelled cycles of a run, with the cycles outside operators (``rest``), as JSON values.

    They are empty if the cycles are unknown.
    """
    part, cycles = profile.part, profile.cycles
    if part is None or cycles is None or rest is None:
        return {}
    figures = {"cycles": cycles.total, "latency": part.latency(cycles.total)}
    code = {"code_waits": profile.code_waits, "code": profile.code}
    return {"modelled": {**vars(part), **figures, "by_kind": vars(cycles), "rest": vars(rest), **code}}


def cycles_json(cycles: CycleCount | None) -> dict[str, Any]:
    """Return the modelled cycles of an operator as JSON values; empty if they are unknown."""
    return {} if cycles is None else {"cycles": cycles.total, "cycles_by_kind": vars(cycles)}


def measured_json(run: ModelRun) -> dict[str, Any]:
    """Return the cycles of a run that a device measured as JSON values; empty if none did."""
    found = run.measured
    if found is None:
        return {}
    about = {key: getattr(found, key) for key in ("device", "counter", "emulated", "runs", "overhead")}
    return {"measured": {**about, "cycles": spread_json(found.total)}}


def spread_json(found: Spread) -> dict[str, int]:
    """Return measured cycles as JSON values."""
    return {"min": found.least, "median": found.median, "max": found.most}


def _operator_json(operator: NetworkOperator, part: FlashPart) -> dict[str, Any]:
    return {
        **{key: getattr(operator, key) for key in ("name", "operator", "function", "macs")},
        "inputs": list(operator.inputs),
        "outputs": list(operator.outputs),
        "scratch": None if operator.scratch is None else _placed_json(operator.scratch),
        **part.kinds,
        "pieces": list(dict.fromkeys(piece.name for piece in part.pieces)),
        **({} if operator.removed is None else {"removed": vars(operator.removed)}),
        **operator_plan(operator),
    }


def _placed_json(placed: NetworkTensor | NetworkScratch) -> dict[str, Any]:
    """Return a tensor or scratch memory; only a plan over several memories has estimates."""
    return {key: value for key, value in vars(placed).items() if key not in _ESTIMATES or value is not None}


def _counts_json(operator: NetworkOperator, run: OperatorRun | None, *, counted: bool) -> dict[str, Any]:
    """Return the instructions of an operator: 0 for one without a function if the others were ``counted``."""
    if run is None:
        nothing = 0 if counted and not operator.function else None
        return {"instructions": nothing, "bound": nothing}
    measured = {} if run.measured is None else {"measured": spread_json(run.measured)}
    return {"instructions": run.instructions, "bound": run.bound, **cycles_json(run.cycles), **measured}
