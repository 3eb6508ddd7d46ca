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
from ai_edge_quantizer.utils import qsv_utils, tfl_flatbuffer_utils

from mlfbuild.core import write_atomic
from mlfbuild.quantization.engine_request import EngineRequest, Node
from mlfbuild.quantization.engines import own_parts

_SIGNATURE = "serving_default"
_EVERYTHING = qtyping.TFLOperationName.ALL_SUPPORTED
_Algorithm = algorithm_manager.AlgorithmName
_NAMES = {code: name for name, code in vars(schema.BuiltinOperator).items() if isinstance(code, int)}
_KINDS = {_NAMES[code]: known for code, known in tfl_flatbuffer_utils.TFL_OP_CODE_TO_NAME.items()}
"""The library's names of operators by those of TensorFlow Lite, which are others for some."""
_UNSUITED = {
    "floatcasting",
    "oscar",
    "gptq",
    "hadamardrotation",
    "decomposedhadamardrotation",
    "dequantizedweightrecovery",
}
"""Algorithms that add operators in float32, leave weights in it, or expect weights that were quantised before."""


def quantize_file(request: EngineRequest) -> dict[str, str]:
    """Write the quantised file; return why operators stay in float32, by output. Raises ``UsageError`` for names."""
    model = flatbuffer_utils.read_model(str(request.source))
    _prepare(model)
    nodes = [node for graph in model.subgraphs for node in _nodes(model, graph)]
    offered = algorithm_manager.get_supported_ops(_Algorithm.MIN_MAX_UNIFORM_QUANT)
    supported = [kind for kind, known in _KINDS.items() if known in offered]
    reasons = request.reasons(nodes, supported, "ai-edge-quantizer")
    main = model.subgraphs[0]
    outputs = [main.tensors[index].name.decode() for index in main.outputs]
    recipe = _recipe(request, [*request.kept(nodes), *(("OUTPUT", (name,)) for name in outputs if name in reasons)])
    content = bytes(flatbuffer_utils.convert_object_to_bytearray(model))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the library divides by zero where a channel is zero
        made = quantizer.Quantizer(content, recipe.get_quantization_recipe())
        result = made.quantize(_ranges(content, recipe, request), enable_progress_report=False).quantized_model
    # Written again: the library puts large constants behind the flatbuffer, where TensorFlow Lite Micro reads none.
    plain = flatbuffer_utils.read_model_from_bytearray(bytearray(result or b""))
    write_atomic(request.out, bytes(flatbuffer_utils.convert_object_to_bytearray(plain)))
    return reasons


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
    """Yield the kind and the names of the outputs of each operator, and the parts of these that no other one has."""
    outputs = [[graph.tensors[index].name.decode() for index in node.outputs] for node in graph.operators]
    parts = iter(own_parts([name for names in outputs for name in names]))
    for node, names in zip(graph.operators, outputs, strict=True):
        own = (part for _ in names for part in next(parts))
        yield _NAMES[model.operatorCodes[node.opcodeIndex].builtinCode], tuple(dict.fromkeys((*names, *own)))


def _recipe(request: EngineRequest, kept: Sequence[Node]) -> Any:
    """Return what the library does with each operator, and that it leaves ``kept`` in float32.

    A later entry has precedence where it applies. Inputs and outputs of the network are operators of the library.
    """
    keys, algorithm = request.keys, request.method(methods())
    recipe = recipe_manager.RecipeManager()
    bits = 16 if keys.activations == "int16" else 8
    weights = 4 if keys.weights == "int4" else 8
    granularity = qtyping.QuantGranularity.CHANNELWISE if keys.per_channel else qtyping.QuantGranularity.TENSORWISE
    # Both scopes mean everything, but differ: otherwise the second would replace the first, which is for operators that
    # have neither the method nor four bits.
    recipe.add_static_config("", _EVERYTHING, bits, 8, granularity)
    recipe.add_static_config("()", _EVERYTHING, bits, weights, granularity, algorithm)
    if weights == 4:  # TensorFlow Lite Micro runs dense layers of four bits with one scale only
        whole, dense = qtyping.QuantGranularity.TENSORWISE, qtyping.TFLOperationName.FULLY_CONNECTED
        recipe.add_static_config("(){1}", dense, bits, weights, whole, algorithm)
    ends = [("", kind) for kind in ("INPUT", "OUTPUT")] if keys.io_type == "float32" else []
    known = {**_KINDS, **qtyping.TFLOperationName.__members__}  # the second has INPUT and OUTPUT
    for name, kind in (*ends, *((names[0], kind) for kind, names in kept)):
        if kind in known:
            scope = f"(){{2}}(^|;){re.escape(name)}(;|$)" if name else "(){2}"
            recipe.add_quantization_config(scope, known[kind], None, _Algorithm.NO_QUANTIZE)
    return recipe


def methods() -> dict[str, Any]:
    """Return the library's algorithms for integers by the words of project files."""
    dense = qtyping.TFLOperationName.FULLY_CONNECTED
    known = [each for each in _Algorithm if algorithm_manager.is_op_registered(each, dense)]
    words = {each.value.lower().removesuffix("_uniform_quantize").replace("_", ""): each for each in known}
    return {word: each for word, each in words.items() if word not in _UNSUITED}


def _ranges(content: bytes, recipe: Any, request: EngineRequest) -> Any:
    """Return what the library measures of each tensor, case by case."""
    # Of itself it would average the extremes of the cases, so that values of many of them clip.
    found = calibrator.Calibrator(content, num_threads=1, qsv_update_func=qsv_utils.min_max_update)
    for case in request.feeds():
        found.calibrate({_SIGNATURE: [{f"in{index}": array for index, array in enumerate(case)}]}, recipe)
    return found.get_model_qsvs()
