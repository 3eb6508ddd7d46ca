"""ONNX files as graphs.

    bytes -> reader -> expansion, folding -> targets -> importer (operators/) -> builder -> Graph

``reader`` turns the protocol buffers into plain values. ``importer`` goes through the nodes: integer operators are
written out (``expansion``), what depends on constants alone is computed (``folding``), everything else becomes
operators of the graph. ONNX puts channels before height and width, the graph's operators put them last; ``layout`` says
in which order a tensor is stored, and ``builder`` changes it where an operator needs another one.

Quantised networks are float32 ones between DequantizeLinear and QuantizeLinear. Neither does anything by itself: a
tensor stays int8 and ``layout.Value`` knows that it means real numbers. A converter takes such a tensor as it is
(``site.held``) where its operator has an integer form and ``targets`` knows the scale of the output; where it asks for
float32 (``site.value``), the tensor is dequantised.
"""

from __future__ import annotations

from mlfbuild.core import InputFileError, UnsupportedModelError, advised
from mlfbuild.frontends.advice import CHANGE, EXPORT_AGAIN
from mlfbuild.frontends.onnx.importer import import_graph
from mlfbuild.frontends.onnx.reader import read_model
from mlfbuild.graph import Graph, GraphError, OperatorError


def parse_onnx(data: bytes, name: str, where: str) -> Graph:
    """Return the ONNX model in ``data`` as a graph called ``name``; ``where`` names the file in messages.

    Raises ``InputFileError`` where it is not a valid model, ``UnsupportedModelError`` where it uses an operator, a type
    or a variant that is not supported.
    """
    try:
        return import_graph(read_model(data), name)
    except OperatorError as error:
        raise UnsupportedModelError(advised(f"{where}: {error}", EXPORT_AGAIN)) from None
    except GraphError as error:
        raise InputFileError(advised(f"{where}: not a valid ONNX model: {error}", EXPORT_AGAIN)) from None
    except UnsupportedModelError as error:
        raise UnsupportedModelError(advised(f"{where}: {error}", CHANGE)) from None
