"""Rules of parameters: readable, within the C runtime's limits, and those that the graph asks for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from mlfbuild.archive.layout import params_path
from mlfbuild.archive.validate.codes import finding
from mlfbuild.archive.validate.context import Context, ModuleView
from mlfbuild.archive.validate.types import Finding
from mlfbuild.errors import InputFileError
from mlfbuild.library import TensorInfo

_MAX_NAME = 80  # TVM_CRT_MAX_STRLEN_PARAM_NAME of crt_config.h
_MAX_NDIM = 6  # TVM_CRT_MAX_NDIM


def parameters(context: Context) -> Iterator[Finding]:
    """Read each parameter of each module, and compare it with the graph."""
    for view in context.modules:
        arguments = None if view.graph is None else {tensor.name: tensor for tensor in view.graph.arguments}
        for name in view.module.params:
            place = f"{params_path(view.name)}: {name}"
            if len(name.encode()) >= _MAX_NAME and arguments is not None:
                yield finding("MLF603", place, f"its name has {len(name.encode())} bytes, of at most {_MAX_NAME - 1}")
            try:
                value = view.module.params[name]
            except InputFileError as error:
                yield finding("MLF604", place, str(error))
                continue
            if arguments is not None:
                yield from _in_graph(view, name, value, arguments.get(name))


def _in_graph(
    view: ModuleView, name: str, value: npt.NDArray[np.generic], argument: TensorInfo | None
) -> Iterator[Finding]:
    place = f"{params_path(view.name)}: {name}"
    if value.ndim > _MAX_NDIM:
        yield finding("MLF603", place, f"it has {value.ndim} dimensions, of at most {_MAX_NDIM}")
    if argument is None:
        yield finding("MLF601", place, f"the graph of {view.name} has no such argument")
    elif (value.dtype.name, value.shape) != (argument.dtype, argument.shape):
        wanted = f"{argument.dtype}{list(argument.shape or ())}"
        yield finding("MLF602", place, f"is {value.dtype.name}{list(value.shape)}, the graph takes {wanted}")


RULES = (parameters,)
