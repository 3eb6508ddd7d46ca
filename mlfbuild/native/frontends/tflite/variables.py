"""Resource variables of TFLite, which VAR_HANDLE, READ_VARIABLE and ASSIGN_VARIABLE use, as states of a graph.

A graph has no variables, only tensors that are written once. The importer therefore tracks, from operator to operator,
the tensor that holds the current value of each variable: first the one with the value from the previous run, later the
one that was assigned last. At the end the two become a ``State``. CALL_ONCE sets the values for the first run; a
variable that is never assigned after that is a constant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mlfbuild.native.frontends.tflite.operators import TfliteSite
from mlfbuild.native.frontends.tflite.operators.shapes import zeros
from mlfbuild.native.frontends.tflite.tensors import Tensors
from mlfbuild.native.graph import Array, GraphError, Node, State, Tensor, ops
from mlfbuild.native.graph.bases import same_quantization

LONGEST_NAME = 1 << 10
"""Maximum length of a variable's name, in bytes."""

Key = tuple[str, str]
"""The container and the name of a variable, which identify it in all subgraphs of a file."""


def variable_key(site: TfliteSite) -> Key:
    """Return the variable of the VAR_HANDLE ``site``.

    Raises ``OperatorError`` if the variable has no name, or one that is too long.
    """
    names = [text or b"" for text in site.fields("VarHandleOptions", "Container", "SharedName")]
    # Names become part of tensor names, and a damaged file may have any length.
    if max(map(len, names)) > LONGEST_NAME:
        raise site.wrong(f"the name of its variable is longer than {LONGEST_NAME} bytes")
    container, name = (text.decode(errors="backslashreplace") for text in names)
    if not name:
        raise site.wrong("its variable has no name")
    return container, name


@dataclass(frozen=True)
class VariableValue:
    """The value that CALL_ONCE assigns to a variable."""

    tensor: Tensor
    data: Array


@dataclass
class _Variable:
    name: str
    is_assigned: bool = False
    """Whether an operator of this subgraph assigns to it; otherwise it is a constant here."""
    initial: Array | None = None
    like: Tensor | None = None
    """The first tensor that was used with it; all others have the same type and shape."""
    before: Tensor | None = None
    """The tensor with its value before the run, if that value is read."""
    current: Tensor | None = None
    """The tensor with its current value."""


class Variables:
    """The variables of one subgraph, tracked while its operators are converted in order."""

    def __init__(self, tensors: Tensors) -> None:
        self._tensors = tensors
        self._variables: dict[Key, _Variable] = {}
        self._handles: dict[int, _Variable] = {}

    def declare(self, site: TfliteSite, handle: int) -> None:
        """VAR_HANDLE: tensor ``handle`` represents a variable.

        Raises ``OperatorError`` if the variable has no name, or one that is too long.
        """
        self._handles[handle] = self._named(variable_key(site))

    def expect(self, site: TfliteSite, handle: int) -> None:
        """Record an ASSIGN_VARIABLE; all must be recorded before the first ``read`` or ``assign``."""
        self._behind(site, handle).is_assigned = True

    def initialise(self, site: TfliteSite, values: Mapping[Key, VariableValue]) -> None:
        """CALL_ONCE: variables have ``values`` before the first run."""
        # Initial values must be known before a variable is used.
        for key, value in values.items():
            variable = self._named(key)
            if variable.current is not None:
                raise site.unsupported(f"initialises the variable {variable.name!r}, which an operator before it uses")
            self._match(site, variable, value.tensor)
            variable.initial = value.data

    def read(self, site: TfliteSite, handle: int, output: int) -> list[Node]:
        """READ_VARIABLE: return the nodes that write the value of a variable to tensor ``output``."""
        variable, result = self._behind(site, handle), site.output()
        self._match(site, variable, result)
        # Never assigned: the value of CALL_ONCE is a constant of the network.
        if not variable.is_assigned:
            if variable.initial is None:
                raise GraphError(site.place, f"nothing assigns a value to the variable {variable.name!r} before it")
            self._tensors.fill(output, variable.initial)
            return []
        # The value before the run is needed only if something reads it.
        if variable.current is None:
            variable.before = variable.current = self._tensors.add(variable.name, result)
        return [_copy(variable.current, result)]

    def assign(self, site: TfliteSite, handle: int) -> list[Node]:
        """ASSIGN_VARIABLE: return the nodes that make the only input of ``site`` the value of a variable."""
        variable, value = self._behind(site, handle), site.input(0)
        self._match(site, variable, value)
        # A separate tensor, because the value may be an input, a constant, an output or shared by two variables.
        variable.current = self._tensors.add(f"{variable.name}_after", value)
        return [_copy(value, variable.current)]

    def assigned(self) -> dict[Key, tuple[Tensor, Tensor]]:
        """Return, for each variable, a tensor of the file with its type and shape, and the one with its final value."""
        found = ((key, variable.like, variable.current) for key, variable in self._variables.items())
        return {key: (like, current) for key, like, current in found if like is not None and current is not None}

    def states(self) -> list[State]:
        """Return the states: variables that are assigned, and read before that.

        A variable without a value from CALL_ONCE begins with zeros.
        """
        found = []
        for variable in self._variables.values():
            before, current, initial = variable.before, variable.current, variable.initial
            # A variable that is not read before it is assigned keeps nothing from run to run.
            if before is not None and current is not None:
                found.append(State(before.name, current.name, zeros(before) if initial is None else initial))
        return found

    def _named(self, key: Key) -> _Variable:
        return self._variables.setdefault(key, _Variable(key[1]))

    def _behind(self, site: TfliteSite, handle: int) -> _Variable:
        if handle not in self._handles:
            raise GraphError(site.place, "its first input is no variable: no VAR_HANDLE writes that")
        return self._handles[handle]

    def _match(self, site: TfliteSite, variable: _Variable, tensor: Tensor) -> None:
        """Refuse a tensor whose type, shape or scale differs from those used with ``variable`` before."""
        like = variable.like = variable.like or tensor
        if (tensor.dtype, tensor.shape) != (like.dtype, like.shape):
            # Values are copied without rescaling, so that all tensors of a variable have one scale.
            raise site.wrong(f"the variable {variable.name!r} is used with {like} and with {tensor}")
        reason = same_quantization(like, tensor)
        if reason is not None:
            raise site.wrong(f"the variable {variable.name!r}: {reason}")


def _copy(source: Tensor, output: Tensor) -> Node:
    return Node(output.name, ops.Reshape(), (source.name,), (output.name,))
