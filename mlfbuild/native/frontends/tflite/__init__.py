"""Read TensorFlow Lite files as graphs.

    bytes -> reader -> importer (operators/, tensors, variables) -> Graph

``reader`` checks the flatbuffer and turns it into plain values. ``importer`` converts the operators of a subgraph in
order; ``tensors`` makes the tensors of the graph, and ``variables`` turns variables, which a network keeps between
runs, into states. Constants stay views of the file's bytes.

``parse_tflite(data, "kws", "kws.tflite")`` returns the ``Graph``. It raises ``InputFileError`` for a file that is not a
valid TFLite model, and ``UnsupportedModelError`` for a valid model with an unsupported operator or type; the place of
both is the file and the operator or tensor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.native.frontends.tflite.importer import parse_tflite
    from mlfbuild.native.frontends.tflite.npu import OriginalNetwork
    from mlfbuild.native.frontends.tflite.reader import IDENTIFIER, reading
else:
    __getattr__ = lazy_attributes(__name__)
