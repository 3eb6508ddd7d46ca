"""Compare archives and networks: what they are, what they compute, and what a quantised network has lost.

``comparing`` compares two archives or two networks for equality; ``losses`` a quantised network with the float one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.usecases.compare.comparing import compare_archives, compare_runs
    from mlfbuild.usecases.compare.losses import file_losses, is_float_with_quantized, measured_losses
else:
    __getattr__ = lazy_attributes(__name__)
