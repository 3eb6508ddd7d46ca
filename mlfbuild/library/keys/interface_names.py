"""Names of a model's inputs and outputs that the project file chooses, instead of those in the model file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from mlfbuild.core import Mistake, in_quotes, is_reserved_in_c
from mlfbuild.core.keys import EXACT, NOT_EMPTY, Keys, Rule, TextOr, not_blank


def _positive(value: int) -> Mistake | None:
    if value > 0:
        return None
    return Mistake("invalid-number", reason=f"{value} is not the size of a dimension", hint="use a number above 0")


_PATTERN = r"[A-Za-z][A-Za-z0-9_]{0,62}"


def port_problem(value: str) -> Mistake | None:
    """Return why ``value`` cannot be a struct member and a part of macros.

    ``workspace`` is refused because its size macro would be that of the module's workspace,
    ``TVMGEN_KWS_WORKSPACE_SIZE``.
    """
    if not re.fullmatch(_PATTERN, value):
        hint = "use a letter, then letters, digits and _, at most 63"
        return Mistake("invalid-name", reason=f"{in_quotes(value)} cannot name an input or output in C", hint=hint)
    # Macros are in capitals, so `Workspace` meets the macro of the workspace too.
    if value.lower() == "workspace" or is_reserved_in_c(value):
        reason = f"{in_quotes(value)} has another meaning in the generated C"
        return Mistake("reserved-name", reason=reason, hint="choose another name")
    return None


_Port = Annotated[str, Rule(port_problem, {"pattern": f"^{_PATTERN}$"})]
_ByPosition = Annotated[tuple[_Port, ...], NOT_EMPTY]
TensorName = Annotated[str, Rule(not_blank("the name of a tensor"), {"pattern": r"\S"})]
SignatureName = Annotated[str, Rule(not_blank("the name of a signature"), {"pattern": r"\S"})]
Dimension = Annotated[int, EXACT, Rule(_positive, {"minimum": 1})]
"""The size of a dimension."""


def _number(value: object) -> Mistake | None:
    if isinstance(value, int | float):
        return None
    return Mistake(
        "constant-invalid", reason=f"{in_quotes(str(value))} is not a number", hint="write a number, true or false"
    )


ConstantInput = Annotated[str | int | float | bool, Rule(_number, {"type": ["number", "boolean"]})]
"""The value of all elements of an input."""
_ByName = Annotated[Mapping[TensorName, _Port], NOT_EMPTY]
PortNames = tuple[str, ...] | Mapping[str, str]
"""A name for each input or output in call order, or names by those in the model file."""
_PortNames = Annotated[PortNames, TextOr(_ByPosition, _ByName)]


@dataclass(frozen=True)
class InterfaceNames(Keys):
    """Names of inputs and outputs in C, by position or by the name in the model file."""

    TITLE = "interface"

    inputs: _PortNames = ()
    """Names of the inputs in call order, or a mapping from those in the model file: [mfcc]"""
    outputs: _PortNames = ()
    """Names of the outputs in call order, or a mapping from those in the model file: [scores]"""

    def given(self) -> dict[str, list[str] | dict[str, str]]:
        """Return the keys that name anything, as plain JSON values."""
        given = {"inputs": self.inputs, "outputs": self.outputs}.items()
        return {key: dict(names) if isinstance(names, Mapping) else list(names) for key, names in given if names}
