"""Find out which programs are installed, which are missing for each target, and how to install them on this system.

``diagnosis`` looks at programs and targets, ``models`` at the compilers that models need, ``dependencies`` at the
libraries that the project requires.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.usecases.doctor.diagnosis import Diagnosis, InstalledProgram, TargetState, diagnose
else:
    __getattr__ = lazy_attributes(__name__)
