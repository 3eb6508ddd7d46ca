"""Rewrite a graph into one that computes the same outputs at a lower cost; each pass is a pure function of a graph.

``pipeline`` lists the passes that every network goes through, in their order. ``fusion`` then decides which operators
run together row by row, with the estimates of ``costs``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.native.passes.dead_channels import remove_dead_channels
    from mlfbuild.native.passes.fusion import fuse
    from mlfbuild.native.passes.layer_parts import split_layers
    from mlfbuild.native.passes.pipeline import run_passes
    from mlfbuild.native.passes.round_products import rounded_products
    from mlfbuild.native.passes.streaming import streamed, windows_of
else:
    __getattr__ = lazy_attributes(__name__)
