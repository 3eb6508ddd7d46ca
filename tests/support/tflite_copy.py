"""Read a ``.tflite`` file into the lists of ``tflite_builder``, so that tests can change them."""

import importlib
from typing import Any

from tflite.BuiltinOperator import BuiltinOperator
from tflite.BuiltinOptions import BuiltinOptions

from mlfbuild.native.frontends.tflite.operators.site import name_of
from mlfbuild.native.frontends.tflite.reader import RawOperator, RawTensor, Reader
from support.tflite_builder import Network
from support.tflite_writer import OperatorSpec, TensorSpec


def copy_of(data: bytes) -> Network:
    """Return the first subgraph of the valid file ``data``, without vectors in options, which are not used."""
    raw, *_ = Reader(data).read()
    return Network(
        [_tensor(tensor) for tensor in raw.tensors],
        [_operator(operator) for operator in raw.operators],
        list(raw.inputs),
        list(raw.outputs),
    )


def _tensor(raw: RawTensor) -> TensorSpec:
    content = b"" if raw.data is None else raw.data.tobytes()
    scales, zero_points = list(raw.scales), list(raw.zero_points)
    return TensorSpec(raw.name, list(raw.shape), raw.type, content, scales, zero_points, raw.axis)


def _operator(raw: RawOperator) -> OperatorSpec:
    kind = name_of(BuiltinOptions, raw.options_type) if raw.options_type else None
    options = {} if kind is None or raw.options is None else _options(kind, raw.options)
    assert name_of(BuiltinOperator, raw.code) != str(raw.code)
    own = raw.options if raw.code == BuiltinOperator.CUSTOM else b""
    return OperatorSpec(raw.code, list(raw.inputs), list(raw.outputs), kind, options, raw.custom_code, own)


def _options(kind: str, table: Any) -> dict[str, Any]:
    """Return the fields of an options table that are numbers."""
    module = importlib.import_module(f"tflite.{kind}")
    options = getattr(module, kind)()
    options.Init(table.Bytes, table.Pos)
    fields = (name.removeprefix("Add") for name in vars(module) if name.startswith("Add"))
    numbers = [name for name in fields if hasattr(options, name) and not hasattr(options, f"{name}AsNumpy")]
    return {name: getattr(options, name)() for name in numbers}
