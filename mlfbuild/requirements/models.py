"""Requirements of the models of a project."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mlfbuild.library import Module, Requirement, requirements_of


def model_requirements(module: Module, model: str, source: Path) -> tuple[Requirement, ...]:
    """Return the requirements of ``module`` of the project's ``model``; their origin is ``kws (kws.tar)``."""
    return tuple(replace(one, origin=f"{model} ({source.name})") for one in requirements_of(module))
