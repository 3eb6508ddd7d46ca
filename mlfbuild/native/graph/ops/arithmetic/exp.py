"""EXP and LOG."""

from __future__ import annotations

import numpy as np

from mlfbuild.native.graph.bases.unary import Tabulated
from mlfbuild.native.graph.lookup_table import Floats
from mlfbuild.native.graph.quantize import integer_range
from mlfbuild.native.graph.tensors import Tensor


class Exp(Tabulated):
    """The exponential."""

    name = "EXP"
    function = np.exp


class Log(Tabulated):
    """The natural logarithm; where it is undefined, the least value of the type."""

    name = "LOG"
    function = np.log

    def _defined(self, real: Floats, output: Tensor) -> Floats:
        # The least stored value and not -infinity: LiteRT fills its table so, and integers have no infinity.
        lowest = np.float32(integer_range(output.dtype)[0] - output.affine.zero_point) * np.float32(output.affine.scale)
        with np.errstate(all="ignore"):
            return np.where(real <= 0, lowest, super()._defined(real, output)).astype(np.float32)
