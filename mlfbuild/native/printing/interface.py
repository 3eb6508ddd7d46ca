"""The C interface of a model: its inputs and outputs in call order, with the names of the struct members."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mlfbuild.core import Mistake, UnsupportedModelError, counted, listed, quoted, suggestion
from mlfbuild.library import TensorInfo, port_names
from mlfbuild.library.cgen import member_name
from mlfbuild.library.graph_json import MAX_NDIM
from mlfbuild.library.keys import InterfaceNames, PortNames
from mlfbuild.native.frontends import Choices, declared_ports
from mlfbuild.native.graph import C_TYPES, DType, Graph, Tensor, integer_range


@dataclass(frozen=True)
class Port:
    """An input or output of the model."""

    name: str
    """The chosen name, or the tensor's; if several outputs are one tensor, the second is ``<name>_2`` and so on."""
    member: str
    """The struct member that points to it."""
    tensor: Tensor

    @property
    def c_type(self) -> str:
        """The C type of an element."""
        return C_TYPES[self.tensor.dtype]

    @property
    def info(self) -> TensorInfo:
        """The port as recorded in an archive."""
        tensor, quantization = self.tensor, self.tensor.quantization
        integers = tensor.dtype not in {DType.FLOAT32, DType.BOOL}
        # Scales per channel have no place in the archive's metadata, and bool has no scale.
        affine = quantization is not None and not quantization.per_channel and integers
        return TensorInfo(
            self.name,
            tensor.dtype.value,
            tensor.size,
            tensor.shape,
            quantization.scale if affine and quantization is not None else None,
            quantization.zero_point if affine and quantization is not None else None,
            "" if self.name == tensor.name else tensor.name,
        )


@dataclass(frozen=True)
class Interface:
    """All inputs and outputs, in call order."""

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]

    @property
    def ports(self) -> tuple[Port, ...]:
        """The inputs, then the outputs."""
        return self.inputs + self.outputs

    @property
    def size(self) -> int:
        """Bytes of all inputs and outputs."""
        return sum(port.tensor.size for port in self.ports)


def runtime_shape(tensor: Tensor) -> tuple[int, ...]:
    """Return the shape for TVM's C runtime: scalars have one element, leading dimensions beyond six are merged.

    For example, [] becomes [1], and [2, 1, 3, 4, 5, 6, 7, 8] becomes [6, 4, 5, 6, 7, 8]. TVM's C runtime has at most
    six dimensions.
    """
    if len(tensor.shape) > MAX_NDIM:
        return (math.prod(tensor.shape[: 1 - MAX_NDIM]), *tensor.shape[1 - MAX_NDIM :])
    return tensor.shape or (1,)


def runtime_dtype(dtype: DType) -> str:
    """Return TVM's name of ``dtype``; ``uint8`` for ``bool``, which has no size in its C runtime.

    The executors of TVM read this name in graphs and metadata; firmware sees the C type of ``C_TYPES``.
    """
    return "uint8" if dtype is DType.BOOL else dtype.value


def interface_of(graph: Graph, names: InterfaceNames | None = None) -> Interface:
    """Return the interface of ``graph`` with the ``names`` of the project file, or those that ``port_names`` chooses.

    Raises ``UsageError`` if ``names`` do not fit the graph, and ``UnsupportedModelError`` if the names of two tensors
    become equal in C, or if a zero point is outside the range of its tensor's type.
    """
    # Without a project file, names follow from the tensors of the model.
    names = names or InterfaceNames()
    inputs, outputs = port_names(graph.inputs, graph.outputs)
    interface = Interface(
        tuple(_ports(graph, "inputs", inputs, names.inputs)), tuple(_ports(graph, "outputs", outputs, names.outputs))
    )
    _check_names(graph.name, interface)
    _check_zero_points(graph.name, interface)
    return interface


def _ports(graph: Graph, kind: str, default: Sequence[str], chosen: PortNames) -> Iterator[Port]:
    tensors = graph.inputs if kind == "inputs" else graph.outputs
    problem = chosen_problem(kind.removesuffix("s"), tensors, chosen)
    if problem is not None:
        raise problem.error(f"{graph.name}: interface.{kind}")
    for at, tensor in enumerate(tensors):
        if chosen and not isinstance(chosen, Mapping):
            name = chosen[at]
        else:
            name = chosen[tensor] if isinstance(chosen, Mapping) and tensor in chosen else default[at]
            # An output that occurs twice is the same tensor, and needs two members in C.
            times = tensors[: at + 1].count(tensor)
            name = name if times == 1 else f"{name}_{times}"
        yield Port(name, member_name(name), graph.tensor(tensor))


def chosen_problem(kind: str, tensors: Sequence[str], chosen: PortNames) -> Mistake | None:
    """Return why the names ``chosen`` in a project file do not fit ``tensors``, those of each ``kind`` (input).

    ``chosen`` is a mapping from tensors to names, or a list with a name for each. Returns ``None`` if they fit.
    """
    known = listed([quoted(tensor) for tensor in tensors])
    if isinstance(chosen, Mapping):
        for name in chosen:
            if name not in tensors:
                reason = f"the model has no {kind} {quoted(name)}{suggestion(name, tensors)}"
                return Mistake("interface-name-unknown", reason=reason, hint=f"use the names in its file: {known}")
    elif chosen and len(chosen) != len(tensors):
        reason = f"has {counted(len(chosen), 'name')}, but the model has {counted(len(tensors), kind)}"
        return Mistake("interface-count", reason=reason, hint=f"name each of {known}")
    return None


def interface_problems(
    path: Path, choices: Choices, given: Mapping[str, Mapping[str, str] | Sequence[str]]
) -> Iterator[tuple[str, Mistake]]:
    """Yield (key, mistake) for the names ``given`` for the inputs and outputs of the model file ``path``.

    Raises the errors of ``declared_ports``.
    """
    ports = dict(zip(("inputs", "outputs"), declared_ports(path, choices), strict=True))
    for key, names in given.items():
        chosen = names if isinstance(names, Mapping) else tuple(names)
        problem = chosen_problem(key.removesuffix("s"), ports[key], chosen)
        if problem is not None:
            yield key, problem


def _check_names(model: str, interface: Interface) -> None:
    taken: dict[str, Port] = {}
    # By member, since C compares the names of members and not those of tensors.
    for port in interface.ports:
        other = taken.setdefault(port.member, port)
        # An input that is also an output is one member of each struct, with one name.
        if other.name != port.name or other.tensor is not port.tensor:
            names = [quoted(each.tensor.name) for each in (other, port)]
            reason = f"the inputs or outputs {' and '.join(names)} both become {quoted(port.member)} in C"
            hint = "name them with the key interface of the model"
            raise UnsupportedModelError("port-names-equal-in-c", place=model, reason=reason, hint=hint)


def _check_zero_points(model: str, interface: Interface) -> None:
    """Raise if a zero point is out of range; operators that move elements ignore it, but the header uses it."""
    for port in interface.ports:
        zero_point = port.info.zero_point
        if zero_point is not None:
            least, greatest = integer_range(port.tensor.dtype)
            if not least <= zero_point <= greatest:
                raise UnsupportedModelError(
                    "zero-point-outside-type",
                    place=f"{model}: {port.tensor}",
                    reason=f"zero point {zero_point} is outside the range of {port.tensor.dtype.value}",
                    hint="quantise the model again",
                )
