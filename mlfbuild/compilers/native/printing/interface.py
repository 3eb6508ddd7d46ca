"""The C interface of a model: its inputs and outputs in call order, with the names of the struct members."""

from __future__ import annotations

from dataclasses import dataclass

from mlfbuild.cgen import C_TYPES, member_name
from mlfbuild.core import UnsupportedModelError
from mlfbuild.graph import DType, Graph, Tensor, integer_range
from mlfbuild.library import TensorInfo


@dataclass(frozen=True)
class Port:
    """An input or output of the model."""

    name: str
    """The tensor's name; if several outputs are the same tensor, the second is ``<name>_2`` and so on."""
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
        affine = quantization is not None and not quantization.per_channel and integers
        return TensorInfo(
            self.name,
            tensor.dtype.value,
            tensor.size,
            tensor.shape,
            quantization.scale if affine and quantization is not None else None,
            quantization.zero_point if affine and quantization is not None else None,
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


def interface_of(graph: Graph) -> Interface:
    """Return the interface of ``graph``.

    Raises ``UnsupportedModelError`` if the names of two tensors become equal in C, or differ only in case, because
    macros are upper case; and if a zero point is outside the range of its tensor's type.
    """
    inputs = tuple(Port(name, member_name(name), graph.tensor(name)) for name in graph.inputs)
    outputs = []
    for index, name in enumerate(graph.outputs):
        times = graph.outputs[: index + 1].count(name)
        unique = name if times == 1 else f"{name}_{times}"
        outputs.append(Port(unique, member_name(unique), graph.tensor(name)))
    interface = Interface(inputs, tuple(outputs))
    _check_names(graph.name, interface)
    _check_zero_points(graph.name, interface)
    return interface


def _check_names(model: str, interface: Interface) -> None:
    taken: dict[str, Port] = {}
    for port in interface.ports:
        other = taken.setdefault(port.member.upper(), port)
        if other.name != port.name or other.tensor is not port.tensor:
            raise UnsupportedModelError(
                "port-names-equal-in-c",
                place=model,
                reason=f"the inputs or outputs {other.name!r} and {port.name!r} both become {port.member!r} in C",
                hint="rename one of them in the model",
            )


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
