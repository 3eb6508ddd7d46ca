"""Replace the file of a model by a newer one, after both versions were compared.

``replacing`` builds both versions, compares their interface, sizes and instructions, and writes files; ``outputs``
compares what the versions compute, and ``model_update`` has the result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.usecases.update.model_update import ModelUpdate, OutputDifference, UpdatedFigure
    from mlfbuild.usecases.update.replacing import update_model
else:
    __getattr__ = lazy_attributes(__name__)
