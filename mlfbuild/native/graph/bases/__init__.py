"""Base classes of operators, shared rules, and arithmetic of weighted sums."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.native.graph.bases.accumulate import centred, finish
    from mlfbuild.native.graph.bases.binary import WHOLE, Arithmetic, Binary, binary_tensors
    from mlfbuild.native.graph.bases.convolution import Convolution, convolution_tensors
    from mlfbuild.native.graph.bases.lstm_arithmetic import LSTM_INPUTS, LstmTensors, lstm_tensors
    from mlfbuild.native.graph.bases.movement import Move, Movement
    from mlfbuild.native.graph.bases.rules import QUANTIZED, WrongShape, alternatives, resting, same_quantization
    from mlfbuild.native.graph.bases.unary import Tabulated, Unary
    from mlfbuild.native.graph.bases.weighted import has_room
    from mlfbuild.native.graph.bases.window import Padding, Pair, Window, resolve_padding
else:
    __getattr__ = lazy_attributes(__name__)
