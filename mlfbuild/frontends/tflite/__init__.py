"""TensorFlow Lite files as graphs.

Constants stay views of the file's bytes. What makes a file no TFLite model is an ``InputFileError``, what is sound but
beyond the supported operators and types an ``UnsupportedModelError``; both name the place.

    bytes -> reader -> importer (operators/, tensors, variables) -> Graph

``reader`` takes the flatbuffer apart without trusting it. ``importer`` goes through the operators of a subgraph;
``tensors`` makes those of the graph, ``variables`` states of the variables that a network keeps between runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    from mlfbuild.frontends.tflite.importer import parse_tflite as parse_tflite
    from mlfbuild.frontends.tflite.reader import IDENTIFIER as IDENTIFIER, reading as reading
else:
    __getattr__ = lazy_attributes(__name__)
