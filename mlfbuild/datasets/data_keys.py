"""The keys of a project file that say where data come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from mlfbuild.core.keys import Keys, ProjectPath, TextOr


@dataclass(frozen=True)
class DataKeys(Keys):
    """Cases for calibration or evaluation."""

    TITLE = "data"

    source: ProjectPath
    """A .npz file with in0 or in_<name>, and labels or out0: data/test.npz"""


DATA = Annotated[DataKeys, TextOr(ProjectPath, DataKeys, wrap=DataKeys)]
"""The type of a key that has data: the path alone, or a mapping with ``source`` and how to prepare what is there."""
