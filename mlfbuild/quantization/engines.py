"""The engines that quantise, by the format of the file: their packages, and the methods that they offer.

Project files are checked against the table ``methods.json``, because importing an engine takes half a second. ``make
generate`` writes it from the engines that are installed there.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from mlfbuild.core import EXTRAS, installed_version

ONNX, TFLITE = "quantize-onnx", "quantize-tflite"
"""The extras with the packages of each engine, which also name the engines."""
_FORMATS = {".onnx": ONNX, ".tflite": TFLITE}

METHODS: Mapping[str, tuple[str, ...]] = {
    engine: tuple(words)
    for engine, words in json.loads(Path(__file__).with_name("methods.json").read_text(encoding="utf-8")).items()
}
"""Engine -> its methods, the default first."""
METHOD_WORDS = tuple(dict.fromkeys(word for methods in METHODS.values() for word in methods))


def engine_of(source: Path) -> str | None:
    """Return the engine for the format of ``source``, one of ``METHODS``; ``None`` for another suffix."""
    return _FORMATS.get(source.suffix.lower())


def engine_versions(source: Path) -> str:
    """Return the versions of the packages that quantise ``source``, such as ``onnx 1.23 onnxruntime 1.32``.

    They are inputs of the quantised file. A package that is missing has no version; nothing is imported.
    """
    names = {requirement.partition(">=")[0] for requirement in EXTRAS[engine_of(source) or ONNX].values()}
    return " ".join(f"{name} {installed_version(name)}".strip() for name in sorted(names))


def node_names(source: Path) -> dict[str, str]:
    """Return how ``keep-float`` may mean the operators of ``source``, by their outputs, in the shortest way."""
    if engine_of(source) == ONNX:
        import onnx

        graph = onnx.load(source, load_external_data=False).graph
        return {name: name for node in graph.node for name in node.output if name}
    from mlfbuild.native import read_model

    outputs = [name for node in read_model(source, "network").nodes for name in node.outputs]
    return {name: parts[0] for name, parts in zip(outputs, own_parts(outputs), strict=True)}


def own_parts(names: Sequence[str]) -> list[list[str]]:
    """Return the parts of each of ``names``, between semicolons, that no other has; without one, the whole name.

    Converters of TensorFlow join the names of operators that they fuse: ``model/act/Relu;model/conv/BiasAdd``.
    """
    split = [list(dict.fromkeys(filter(None, name.split(";")))) for name in names]
    counts = Counter(part for parts in split for part in parts)
    found = ([part for part in parts if counts[part] == 1] for parts in split)
    return [parts or [name] for name, parts in zip(names, found, strict=True)]
