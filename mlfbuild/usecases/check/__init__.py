"""Check a project beyond its file, without compiling: what builds and runs would refuse, and what nothing checks.

``requirements`` looks at libraries, devices and budgets; ``before_building`` at start-up code, runners, the names of a
model's inputs and outputs, and missing tools.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.usecases.check.before_building import Foreseen, foreseen, missing_tools
    from mlfbuild.usecases.check.requirements import (
        assumed_places, check_dependencies, known_requirements, unchecked_budgets, unused_devices,
    )
else:
    __getattr__ = lazy_attributes(__name__)
