"""The key ``mlfbuild`` of ``metadata.json``, for facts that TVM's keys cannot hold; TVM's tools ignore it.

Each module may have it in addition to TVM's keys. It is written only if it has members, so an archive from TVM is
rewritten without it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from mlfbuild.core import SHA256, InputFileError, quoted
from mlfbuild.library.bundling import CONFIGURATIONS
from mlfbuild.library.data_type import tensor_size
from mlfbuild.library.fields import Fields
from mlfbuild.library.keys import fact_name_problem, fact_problem
from mlfbuild.library.metadata.memory import functions_json, main_json, read_functions, read_main
from mlfbuild.library.metadata.module_keys import context_json, dependencies_json, read_contexts, read_dependencies
from mlfbuild.library.metadata.unknown import kept_fields
from mlfbuild.library.network import (
    ARENA,
    CONSTANT,
    MEMORIES,
    STATE,
    Network,
    NetworkConstant,
    NetworkMemory,
    NetworkOperator,
    NetworkPoint,
    NetworkScratch,
    NetworkTensor,
    RemovedChannels,
)
from mlfbuild.library.npu import NpuEstimate, NpuFacts, NpuLayer
from mlfbuild.library.numpy_types import is_supported
from mlfbuild.library.value import (
    DeviceContext,
    ExternalDependency,
    Fact,
    MainMemory,
    ModuleFacts,
    OperatorFunction,
    TensorInfo,
    TracedTensor,
    UnknownField,
)


def network_json(network: Network) -> dict[str, Any]:
    """Return ``network`` as JSON values, without empty and unknown ones."""
    return {
        "arena": network.arena,
        "tensors": [_without_none({**vars(tensor), "shape": list(tensor.shape)}) for tensor in network.tensors],
        "operators": [_operator_json(operator) for operator in network.operators],
        **({"constants": [vars(constant) for constant in network.constants]} if network.constants else {}),
        **({"memories": [vars(memory) for memory in network.memories]} if network.memories else {}),
        **({"curve": [vars(point) for point in network.curve]} if network.curve else {}),
    }


def _operator_json(operator: NetworkOperator) -> dict[str, Any]:
    kept = {key: value for key, value in vars(operator).items() if key not in {"kernels", "by_rows"}}  # in plan.json
    lists = {key: list(getattr(operator, key)) or None for key in ("symbols", "inputs", "outputs")}
    scratch = None if operator.scratch is None else _without_none(vars(operator.scratch))
    removed = None if operator.removed is None else vars(operator.removed)
    return _without_none({**kept, **lists, "scratch": scratch, "removed": removed})


def _without_none(members: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in members.items() if value is not None}


def read_network(members: Fields, state_size: int) -> Network:
    """Return the network in ``members``, for a module with ``state_size`` bytes of state.

    Raises ``InputFileError`` if a value has the wrong type, a tensor is outside the arena or the state, or an index is
    out of range.
    """
    arena, entries = members.integer("arena"), members.objects("operators")
    sizes = {ARENA: arena, STATE: state_size}
    tensors = tuple(_tensor(entry, sizes, len(entries)) for entry in members.objects("tensors"))
    operators = tuple(_operator(entry, arena, len(tensors)) for entry in entries)
    memories = tuple(each.record(NetworkMemory) for each in members.objects("memories"))
    if memories and sum(memory.size for memory in memories) != arena:
        raise _invalid(members, "memories", f"have other sizes than the arena of {arena} bytes together")
    constants = tuple(each.record(NetworkConstant) for each in members.objects("constants"))
    curve = tuple(each.record(NetworkPoint) for each in members.objects("curve"))
    return Network(arena, tensors, operators, constants, memories, curve)


def _tensor(entry: Fields, sizes: Mapping[str, int], operators: int) -> NetworkTensor:
    memory, size = entry.text("memory"), entry.integer("size")
    dtype, shape = entry.text("dtype"), entry.integers("shape")
    if memory not in MEMORIES:
        raise _invalid(entry, "memory", f"{quoted(memory)} is none of {', '.join(MEMORIES)}")
    if not is_supported(dtype) or tensor_size(dtype, shape) != size:
        raise _invalid(entry, "size", "does not match the shape and the dtype")
    offset = entry.integer("offset") if memory != CONSTANT else None
    if memory in sizes and offset is not None and offset + size > sizes[memory]:
        raise _invalid(entry, "offset", f"is outside the {memory} of {sizes[memory]} bytes")
    first, last = entry.integer("first"), entry.integer("last")
    # A network without operators can have tensors: inputs that are also outputs, with both times 0.
    if not first <= last < max(operators, 1):
        raise _invalid(entry, "last", f"is before first, or not one of the {operators} operators")
    estimates = (entry.integer(key) if key in entry else None for key in ("accesses", "saved"))
    return NetworkTensor(entry.text("name"), dtype, shape, size, memory, offset, first, last, *estimates)


def _operator(entry: Fields, arena: int, tensors: int) -> NetworkOperator:
    return entry.record(
        NetworkOperator,
        kernels=(),
        by_rows=None,  # both are in plan.json
        inputs=_numbers(entry, "inputs", tensors),
        outputs=_numbers(entry, "outputs", tensors),
        scratch=_scratch(entry.member("scratch"), arena) if "scratch" in entry else None,
        removed=_removed(entry.member("removed")) if "removed" in entry else None,
    )


def _removed(entry: Fields) -> RemovedChannels:
    found = entry.record(RemovedChannels)
    if found.channels > found.of:
        raise _invalid(entry, "channels", f"is more than the {found.of} of the layer")
    return found


def _numbers(entry: Fields, key: str, tensors: int) -> tuple[int, ...]:
    found = entry.integers(key)
    if any(number >= tensors for number in found):
        raise _invalid(entry, key, f"has the number of a tensor that is not one of the {tensors} tensors")
    return found


def _scratch(entry: Fields, arena: int) -> NetworkScratch:
    scratch = entry.record(NetworkScratch)
    if scratch.offset + scratch.size > arena:
        raise _invalid(entry, "offset", f"is outside the arena of {arena} bytes")
    return scratch


def _invalid(entry: Fields, key: str, reason: str) -> InputFileError:
    return entry.error(key, reason, code="metadata-network-invalid", hint="write the archive again")


EXTENSION = "mlfbuild"
VERSION = 1
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MOST_FACTS = 256
_WRITE_AGAIN = "write the archive again"

KEPT_FACTS = tuple(each.name for each in fields(ModuleFacts))
"""Facts of a module that only the key has, by their names in ``Module`` and ``Extension``."""


@dataclass(frozen=True)
class Extension(ModuleFacts):
    """The members of the key; a member is absent if TVM's keys or the module's files have the same information."""

    inputs: tuple[TensorInfo, ...] | None = None
    """In call order, which sorted JSON loses, with shape and quantisation."""
    outputs: tuple[TensorInfo, ...] | None = None
    codegen: tuple[str, ...] = ()
    """In archives of several modules, paths below ``codegen`` of the module's files without its name in theirs."""
    main: tuple[MainMemory, ...] = ()
    """In version 1, which has only the storage ids of a graph."""
    operator_functions: tuple[OperatorFunction, ...] = ()
    """In version 1."""
    external_dependencies: tuple[ExternalDependency, ...] = ()
    """In versions before 5."""
    contexts: tuple[DeviceContext, ...] = ()
    target_devices: tuple[int | None, ...] = ()
    """Device type of each target in order; versions 6 and 7 do not record the types, and earlier ones not the order."""
    export_utc: bool = False
    unknown: tuple[UnknownField, ...] = ()
    """Read only: the fields of the module that are in no object of the version (``unknown``)."""
    archive: tuple[UnknownField, ...] = ()
    """Read only: the fields beside ``modules``, in versions without this key."""

    def json(self) -> dict[str, Any] | None:
        """Return the value of the key, or ``None`` if it has no members."""
        members: dict[str, Any] = {
            "inputs": None if self.inputs is None else list(map(_tensor_json, self.inputs)),
            "outputs": None if self.outputs is None else list(map(_tensor_json, self.outputs)),
            "codegen": list(self.codegen) or None,
            "main": main_json(self.main) or None,
            "operator_functions": functions_json(self.operator_functions) or None,
            "external_dependencies": dependencies_json(self.external_dependencies) or None,
            "contexts": [context_json(context) for context in self.contexts] or None,
            "target_devices": list(self.target_devices) or None,
            "workspace_bound": self.workspace_bound,
            "trace": [_traced_json(traced) for traced in self.trace] or None,
            "network": None if self.network is None else network_json(self.network),
            "npu": None if self.npu is None else _npu_json(self.npu),
            "notes": list(self.notes) or None,
            "extensions": dict(sorted(self.extensions.items())) or None,
            **{name: getattr(self, name) or None for name in _PLAIN},
        }
        said = {key: value for key, value in members.items() if value is not None}
        return {"version": VERSION, **said} if said else None


_PLAIN = ("model_id", "state_size", "hook", "runtime", "tflm", "source_sha256", "export_utc")
"""Members whose value is written as it is, unless it is empty."""
MEMBERS = frozenset({"version", *(each.name for each in fields(Extension))})
"""All members of the key."""


def is_newer(value: object) -> bool:
    """Return whether ``value`` is the key of another version, which is kept unchanged as an unknown field."""
    version = value.get("version") if isinstance(value, dict) else None
    return isinstance(version, int) and not isinstance(version, bool) and 0 <= version < 2**63 and version != VERSION


def read_extension(fields: Fields) -> Extension:
    """Return the key of a module; a key of another version is left to the unknown fields.

    Raises ``InputFileError`` if a value has the wrong type.
    """
    if EXTENSION not in fields:
        return Extension()
    key = fields.member(EXTENSION)
    if key.integer("version") != VERSION:
        fields.leave(EXTENSION)
        return Extension()
    state_size = key.integer("state_size") if "state_size" in key else 0
    return Extension(
        inputs=_read_tensors(key, "inputs"),
        outputs=_read_tensors(key, "outputs"),
        codegen=key.texts("codegen"),
        main=read_main(key.objects("main")),
        operator_functions=read_functions(key.objects("operator_functions")),
        external_dependencies=read_dependencies(key),
        contexts=read_contexts(key),
        target_devices=key.optional_integers("target_devices"),
        model_id=key.text("model_id", default=""),
        state_size=state_size,
        workspace_bound=key.integer("workspace_bound") if "workspace_bound" in key else None,
        trace=tuple(_read_traced(entry) for entry in key.objects("trace")),
        network=read_network(key.member("network"), state_size) if "network" in key else None,
        hook="hook" in key and key.flag("hook"),
        **_read_texts(key),
        npu=_read_npu(key.member("npu")) if "npu" in key else None,
        notes=key.texts("notes"),
        extensions=_read_facts(key) if "extensions" in key else {},
        export_utc="export_utc" in key and key.flag("export_utc"),
        unknown=kept_fields(key, "unknown"),
        archive=kept_fields(key, "archive"),
    )


def _npu_json(npu: NpuFacts) -> dict[str, Any]:
    estimate = {**vars(npu.estimate), "layers": [vars(layer) for layer in npu.estimate.layers]}
    return {**vars(npu), "on_core": list(npu.on_core), "estimate": estimate}


def _read_npu(entry: Fields) -> NpuFacts:
    estimate = entry.member("estimate")
    layers = tuple(layer.record(NpuLayer) for layer in estimate.objects("layers"))
    return entry.record(NpuFacts, on_core=entry.texts("on_core"), estimate=estimate.record(NpuEstimate, layers=layers))


def _read_facts(module: Fields) -> dict[str, Fact]:
    key = module.member("extensions")
    names = key.names()
    if len(names) > _MOST_FACTS:
        raise module.error("extensions", f"has more than {_MOST_FACTS} members", hint=_WRITE_AGAIN)
    return {name: _read_fact(key, name) for name in names}


def _read_fact(key: Fields, name: str) -> Fact:
    value: Fact
    if key.holds(name, bool):
        value = key.flag(name)
    elif key.holds(name, int):
        value = key.integer(name, minimum=-(2**63 - 1))
    else:
        value = key.number(name) if key.holds(name, float) else key.text(name)
    problem = fact_name_problem(name) or fact_problem(value)
    if problem is not None:
        raise key.error(name, problem.reason, hint=_WRITE_AGAIN)
    return value


def _read_texts(key: Fields) -> dict[str, Any]:
    found = {name: key.text(name, default="") for name in ("runtime", "tflm", "source_sha256")}
    runtime, tflm, digest = found.values()
    # The path becomes part of an #include in generated code, so only the known ones are accepted.
    if runtime and runtime not in CONFIGURATIONS:
        raise key.error("runtime", f"{quoted(runtime)} is not a configuration of TVM's runtime", hint=_WRITE_AGAIN)
    if tflm and not _DATE.fullmatch(tflm):
        raise key.error("tflm", "must be a date such as 2026-10-13", hint=_WRITE_AGAIN)
    if digest and not SHA256.fullmatch(digest):
        raise key.error("source_sha256", "must be 64 hexadecimal digits", hint=_WRITE_AGAIN)
    return found


def check_tensors(extension: Extension, tensors: Sequence[TensorInfo], key: str, module: Fields) -> None:
    """Raise ``InputFileError`` if the extension's ``inputs`` or ``outputs`` (``key``) differ from TVM's ``tensors``."""
    ours = extension.inputs if key == "inputs" else extension.outputs
    if ours is not None and _summary(ours) != _summary(tensors):
        raise contradiction(module, key, f"memory.functions.main[0].{key}")


def check_arena(extension: Extension, main: Sequence[MainMemory], executor: str, module: Fields) -> None:
    """Raise ``InputFileError`` if the extension's ``network`` has another workspace size than TVM's key."""
    # The memory of a graph is planned when it is unpacked, so its network has no arena here.
    planned = None if extension.network is None or executor != "aot" else extension.network.arena
    if planned is not None and main and planned != main[0].workspace_size:
        raise contradiction(module, "network", "memory.functions.main[0].workspace_size_bytes")


def contradiction(module: Fields, key: str, other: str) -> InputFileError:
    """Return the error for a member of the extension that contradicts TVM's key ``other``."""
    reason = f"contradicts {other}"
    return module.member(EXTENSION).error(key, reason, code="metadata-contradiction", hint=_WRITE_AGAIN)


def _summary(tensors: Sequence[TensorInfo]) -> dict[str, tuple[str, int]]:
    return {tensor.name: (tensor.dtype, tensor.size) for tensor in tensors}


def _tensor_json(tensor: TensorInfo) -> dict[str, Any]:
    details = {"shape": tensor.shape, "scale": tensor.scale, "zero_point": tensor.zero_point}
    known = {key: value for key, value in details.items() if value is not None}
    source = {"source_name": tensor.source_name} if tensor.source_name else {}
    return {"name": tensor.name, "dtype": tensor.dtype, "size": tensor.size, **known, **source}


def _traced_json(traced: TracedTensor) -> dict[str, Any]:
    return {**_tensor_json(traced.tensor), "operator": traced.operator, "function": traced.function}


def _read_traced(entry: Fields) -> TracedTensor:
    tensor = _read_tensor(entry)
    if not is_supported(tensor.dtype):
        raise entry.error("dtype", f"{quoted(tensor.dtype)} is not a supported element type")
    if tensor.shape is None or tensor_size(tensor.dtype, tensor.shape) != tensor.size:
        raise entry.error("size", "does not match the shape and the dtype", hint=_WRITE_AGAIN)
    return TracedTensor(tensor, entry.text("operator"), entry.text("function"))


def _read_tensors(fields: Fields, key: str) -> tuple[TensorInfo, ...] | None:
    return tuple(_read_tensor(entry) for entry in fields.objects(key)) if key in fields else None


def _read_tensor(entry: Fields) -> TensorInfo:
    zero_point = entry.integer("zero_point", minimum=-(2**31)) if "zero_point" in entry else None
    return entry.record(TensorInfo, zero_point=zero_point)
