"""TensorFlow Lite files as graphs.

Constants stay views of the file's bytes. What makes a file no TFLite model is an ``InputFileError``, what is sound but
beyond the supported operators and types an ``UnsupportedModelError``; both name the place.

    bytes -> reader -> importer (operators/, tensors, variables) -> Graph

``reader`` takes the flatbuffer apart without trusting it. ``importer`` goes through the operators of a subgraph;
``tensors`` makes those of the graph, ``variables`` states of the variables that a network keeps between runs.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlfbuild.frontends.tflite.importer import parse_tflite
    from mlfbuild.frontends.tflite.reader import IDENTIFIER, reading

__all__ = ["IDENTIFIER", "parse_tflite", "reading"]

if not TYPE_CHECKING:  # or every name would be known to type checkers

    def __getattr__(name: str) -> object:
        """Import the module that has ``name`` when it is first asked for."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        home = "importer" if name == "parse_tflite" else "reader"
        return getattr(importlib.import_module(f"{__name__}.{home}"), name)
