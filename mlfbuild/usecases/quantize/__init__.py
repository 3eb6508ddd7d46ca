"""Quantise a model file, or improve how it is quantised.

``file`` needs no project; ``improving`` applies what ``quantization.losses`` advises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.usecases.quantize.file import improve_file, quantize_file
    from mlfbuild.usecases.quantize.improving import ImproveResult, ImproveStep, improve_model
else:
    __getattr__ = lazy_attributes(__name__)
