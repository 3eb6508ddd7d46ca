"""Read ONNX files as graphs.

    bytes -> reader -> expansion, folding -> targets -> importer (operators/) -> builder -> Graph

``reader`` turns the protocol buffers into plain values. ``importer`` converts the nodes in order: integer operators are
rewritten as float operators between conversions (``expansion``), nodes whose inputs are constant are computed
(``folding``), and all others become operators of the graph. ONNX puts channels before height and width, the operators
of the graph put them last: ``layout`` records the order in which a tensor is stored, and ``builder`` transposes it if
an operator requires another order.

Quantised networks are float32 networks with pairs of QuantizeLinear and DequantizeLinear. Neither becomes an operator
by itself: the tensor between them stays int8, and ``layout.Value`` records that it represents real numbers. If an
operator has an integer form and ``targets`` knows the scale of its output, its converter uses the int8 tensor
(``op.held``). Otherwise it requests float32 (``op.value``), and the tensor is dequantised.

``parse_onnx(data, "kws", "kws.onnx")`` returns the ``Graph``. The weights must be in ``data``; other files are never
read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.native.frontends.onnx.parse import parse_onnx
else:
    __getattr__ = lazy_attributes(__name__)
