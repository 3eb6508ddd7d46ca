"""Try settings of a model: build, measure and evaluate each point of a space, and keep what came of it.

``space`` lists the points, ``measuring`` measures one of them, here or on a worker of a farm, ``exploring`` builds all
of them and repeats nothing that was done before, ``writing`` puts the chosen settings into the project file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.usecases.explore.exploring import ExploreResult, explore_model
    from mlfbuild.usecases.explore.writing import renew_lock, write_settings, write_values
else:
    __getattr__ = lazy_attributes(__name__)
