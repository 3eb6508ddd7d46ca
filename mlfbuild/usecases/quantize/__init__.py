"""Quantise a file, or improve how a model of a project is quantised.

``file`` quantises one file without a project; ``improving`` applies what ``quantization.losses`` advises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.usecases.quantize.file import quantize_file
    from mlfbuild.usecases.quantize.improving import ImproveResult, ImproveStep, improve_model
else:
    __getattr__ = lazy_attributes(__name__)
