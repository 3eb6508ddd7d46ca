"""The names of a model's inputs and outputs, without reading its weights or converting its operators."""

from __future__ import annotations

from pathlib import Path

from mlfbuild.core import read_bytes, require_extra
from mlfbuild.native.frontends.choices import Choices
from mlfbuild.native.frontends.errors import naming_file


def declared_ports(path: Path, choices: Choices) -> tuple[list[str], list[str]]:
    """Return the names of the inputs and outputs that the graph of the model file ``path`` will have, in call order.

    Those that ``choices`` makes constant or the network's own state are left out. Raises ``InputFileError`` for a file
    that is missing or damaged, ``UsageError`` if it has no such signature, and ``ToolNotFoundError`` without the
    package onnx.
    """
    data = read_bytes(path, "model")
    if path.suffix.lower() == ".onnx":
        require_extra("onnx", path, "reading an .onnx file")
        from mlfbuild.native.frontends.onnx.reader import port_names_of

        with naming_file(str(path), "onnx-malformed"):
            inputs, outputs = port_names_of(data)
    else:
        from mlfbuild.native.frontends.tflite.importer import port_names_in

        with naming_file(str(path), "tflite-malformed"):
            inputs, outputs = port_names_in(data, choices.signature, path.name)
    kept = {*choices.state.values()}
    gone = choices.state.keys() | choices.constants.keys()
    return [name for name in inputs if name not in gone], [name for name in outputs if name not in kept]
