"""What the models of a project want of other libraries, with who wants it: the model, and the archive it comes from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mlfbuild.library import Module, Wish, wishes


def wishes_of(module: Module, model: str, source: Path) -> tuple[Wish, ...]:
    """Return what ``module`` of the project's ``model`` wants; messages call who wants it ``kws (kws.tar)``."""
    return tuple(replace(wish, origin=f"{model} ({source.name})") for wish in wishes(module))
