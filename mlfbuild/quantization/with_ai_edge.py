"""Quantise a .tflite file with ai-edge-quantizer.

The library takes files as today's converters write them. Older ones get a signature, the present field of each
operator's code, and distinct names of tensors first; without the second, it takes every operator for an ADD.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.tools import flatbuffer_utils
from ai_edge_quantizer import algorithm_manager, calibrator, qtyping, quantizer, recipe_manager
from ai_edge_quantizer.utils import qsv_utils

from mlfbuild.core import UsageError, listed, write_atomic
from mlfbuild.quantization.engine_request import EngineRequest, Node
from mlfbuild.quantization.engines import METHODS, TFLITE
from mlfbuild.quantization.quantize_keys import MINMAX, QuantizeKeys

_SIGNATURE = "serving_default"
_EVERYTHING = qtyping.TFLOperationName.ALL_SUPPORTED
_Algorithm = algorithm_manager.AlgorithmName


def quantize_file(request: EngineRequest) -> dict[str, str]:
    """Write the quantised file; return why operators stay in float32, by output. Raises ``UsageError`` for names."""
    model = flatbuffer_utils.read_model(str(request.source))
    _prepare(model)
    nodes = [node for graph in model.subgraphs for node in _nodes(model, graph)]
    recipe = _recipe(request.keys, request.kept(nodes))
    content = bytes(flatbuffer_utils.convert_object_to_bytearray(model))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the library divides by zero where a channel is zero
        made = quantizer.Quantizer(content, recipe.get_quantization_recipe())
        result = made.quantize(_ranges(content, recipe, request), enable_progress_report=False).quantized_model
    write_atomic(request.out, bytes(result or b""))
    supported = [each.value for each in algorithm_manager.get_supported_ops(_Algorithm.MIN_MAX_UNIFORM_QUANT)]
    return request.reasons(nodes, supported, "ai-edge-quantizer")


def _prepare(model: Any) -> None:
    """Bring ``model`` into the form that the library reads."""
    for code in model.operatorCodes:
        code.builtinCode = max(code.builtinCode, code.deprecatedBuiltinCode)
    seen: Counter[bytes] = Counter()
    for tensor in (tensor for graph in model.subgraphs for tensor in graph.tensors):
        seen[tensor.name] += 1
        if seen[tensor.name] > 1:
            tensor.name += b" (%d)" % seen[tensor.name]
    main = model.subgraphs[0]
    signature = schema.SignatureDefT()
    signature.signatureKey, signature.subgraphIndex = _SIGNATURE.encode(), 0
    signature.inputs, signature.outputs = _ports(main.inputs, "in"), _ports(main.outputs, "out")
    model.signatureDefs = [signature]


def _ports(tensors: Sequence[int], prefix: str) -> list[Any]:
    found = []
    for index, tensor in enumerate(tensors):
        port = schema.TensorMapT()
        port.name, port.tensorIndex = f"{prefix}{index}".encode(), int(tensor)
        found.append(port)
    return found


def _nodes(model: Any, graph: Any) -> Iterator[Node]:
    """Yield the kind and the names of the outputs of each operator."""
    for node in graph.operators:
        names = tuple(graph.tensors[index].name.decode() for index in node.outputs)
        yield flatbuffer_utils.opcode_to_name(model, node.opcodeIndex) or "", names


def _recipe(keys: QuantizeKeys, kept: Sequence[Node]) -> Any:
    """Return what the library does with each operator; a later entry has precedence where it applies."""
    recipe = recipe_manager.RecipeManager()
    bits = 16 if keys.activations == "int16" else 8
    channels, whole = qtyping.QuantGranularity.CHANNELWISE, qtyping.QuantGranularity.TENSORWISE
    weights, granularity = 4 if keys.weights == "int4" else 8, channels if keys.per_channel else whole
    # Entries differ in their scope, because one of the same scope would replace the other. What the method or four bits
    # do not apply to keeps the first.
    recipe.add_static_config("", _EVERYTHING, bits, 8, granularity)
    recipe.add_static_config("()", _EVERYTHING, bits, weights, granularity, _algorithm(keys.method))
    # One scale for the weights: TensorFlow Lite Micro has no others here, and the archives' numbers are its own.
    for scope, width, algorithm in (("(){1}", 8, MINMAX), ("(){2}", weights, keys.method)):
        dense = qtyping.TFLOperationName.FULLY_CONNECTED
        recipe.add_static_config(scope, dense, bits, width, whole, _algorithm(algorithm))
    ends = [("", kind) for kind in ("INPUT", "OUTPUT")] if keys.io_type == "float32" else []
    for name, kind in (*ends, *((names[0], kind) for kind, names in kept)):
        if kind in qtyping.TFLOperationName.__members__:
            scope, operator = f"(){{3}}{re.escape(name)}", qtyping.TFLOperationName(kind)
            recipe.add_quantization_config(scope, operator, None, _Algorithm.NO_QUANTIZE)
    return recipe


def _algorithm(method: str) -> Any:
    """Return the library's name of ``method``; raises ``UsageError`` if the installed version lacks it."""
    offered = {_word(each.value): each for each in _Algorithm}
    if method not in offered:
        known = [word for word in METHODS[TFLITE] if word in offered]
        raise UsageError(
            "quantize-method",
            place=f"method {method}",
            reason=f"the installed ai-edge-quantizer has {listed(known)}",
            hint="choose one of them, or install another version",
        )
    return offered[method]


def _word(name: str) -> str:
    return name.lower().removesuffix("_uniform_quantize").replace("_", "")


def _ranges(content: bytes, recipe: Any, request: EngineRequest) -> Any:
    """Return what the library measures of each tensor, case by case."""
    # Of itself it would average the extremes of the cases, so that values of many of them clip.
    found = calibrator.Calibrator(content, num_threads=1, qsv_update_func=qsv_utils.min_max_update)
    for case in request.feeds():
        found.calibrate({_SIGNATURE: [{f"in{index}": array for index, array in enumerate(case)}]}, recipe)
    return found.get_model_qsvs()
