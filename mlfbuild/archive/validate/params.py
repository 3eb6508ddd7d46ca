"""Rules for parameters: they must match the graph, the limits of TVM's C runtime, and their other forms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mlfbuild.archive.paths import params_path
from mlfbuild.archive.validate.codes import finding
from mlfbuild.archive.validate.findings import Finding
from mlfbuild.archive.validate.views import ArchiveView, ModuleView
from mlfbuild.core import InputFileError
from mlfbuild.library import ParamInfo, TensorInfo, load_params_json, param_infos, parse_dtype
from mlfbuild.library.graph_json import MAX_NDIM, MAX_PARAM_NAME

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


def parameters(archive: ArchiveView) -> Iterator[Finding]:
    """Compare each parameter with the graph and the limits."""
    for view in archive.modules:
        if view.graph is None:
            continue
        arguments = {tensor.name: tensor for tensor in view.graph.arguments}
        for name, info in param_infos(view.module.params).items():
            place = f"{params_path(view.name)}: {name}"
            if len(name.encode()) > MAX_PARAM_NAME:
                message = f"the name has {len(name.encode())} bytes, more than {MAX_PARAM_NAME}"
                yield finding("MLF603", place, message)
            if len(info.shape) > MAX_NDIM:
                yield finding("MLF603", place, f"has {len(info.shape)} dimensions, more than {MAX_NDIM}")
            yield from _in_graph(view, place, info, arguments.get(name))


def forms_of_parameters(archive: ArchiveView) -> Iterator[Finding]:
    """Compare parameters in JSON with TVM's form, which counts if an archive has both."""
    for view in archive.modules:
        path = params_path(view.name, "json")
        if path in archive.files and params_path(view.name) in archive.files:
            try:
                other = load_params_json(archive.files[path], path)
            except InputFileError as error:
                yield finding("MLF604", error.place, error.reason)
                continue
            known = view.module.params
            for name in sorted({*known, *other}):
                if name not in known or name not in other or not _same_array(known[name], other[name]):
                    yield finding("MLF604", f"{path}: {name}", f"differs from {params_path(view.name)}")


def _same_array(left: npt.NDArray[np.generic], right: npt.NDArray[np.generic]) -> bool:
    return left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()


def _in_graph(view: ModuleView, place: str, info: ParamInfo, argument: TensorInfo | None) -> Iterator[Finding]:
    if argument is None:
        yield finding("MLF601", place, f"the graph of {view.name} has no such argument")
    elif info.shape != argument.shape or not _same_type(info.dtype, argument.dtype):
        wanted = f"{argument.dtype}{list(argument.shape or ())}"
        yield finding("MLF602", place, f"is {info.dtype}{list(info.shape)}, but {wanted} in the graph")


def _same_type(left: str, right: str) -> bool:
    """Return whether two names, numpy's and TVM's, are the same type, for example ``bool`` and ``uint1``."""
    types = (parse_dtype(left), parse_dtype(right))
    return None in types or types[0] == types[1]


RULES = (parameters, forms_of_parameters)
