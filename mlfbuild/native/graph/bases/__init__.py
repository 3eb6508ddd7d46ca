"""Base classes of operators, shared rules, and arithmetic of weighted sums."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    from mlfbuild.native.graph.bases.accumulate import centred as centred, finish as finish
    from mlfbuild.native.graph.bases.binary import (
        WHOLE as WHOLE,
        Arithmetic as Arithmetic,
        Binary as Binary,
        binary_tensors as binary_tensors,
    )
    from mlfbuild.native.graph.bases.convolution import (
        Convolution as Convolution,
        convolution_tensors as convolution_tensors,
    )
    from mlfbuild.native.graph.bases.lstm_arithmetic import (
        LSTM_INPUTS as LSTM_INPUTS,
        LstmTensors as LstmTensors,
        lstm_tensors as lstm_tensors,
    )
    from mlfbuild.native.graph.bases.movement import Move as Move, Movement as Movement
    from mlfbuild.native.graph.bases.rules import (
        QUANTIZED as QUANTIZED,
        WrongShape as WrongShape,
        alternatives as alternatives,
        resting as resting,
        same_quantization as same_quantization,
    )
    from mlfbuild.native.graph.bases.tabulated import Tabulated as Tabulated
    from mlfbuild.native.graph.bases.unary import Unary as Unary
    from mlfbuild.native.graph.bases.weighted import has_room as has_room
    from mlfbuild.native.graph.bases.window import (
        Padding as Padding,
        Pair as Pair,
        Window as Window,
        resolve_padding as resolve_padding,
    )
else:
    __getattr__ = lazy_attributes(__name__)
