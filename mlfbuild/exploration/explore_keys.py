"""The keys of a project file that can be explored, as they are written in ``explore``."""

from __future__ import annotations

import re

from mlfbuild.core import Mistake, suggestion
from mlfbuild.core.keys import Rule
from mlfbuild.library import OptionValue

Setting = OptionValue | tuple[str, ...]
"""A value that is tried; a list for keys such as ``quantize.keep-float``."""
GOALS = ("latency", "size", "accuracy")
"""The values of the key ``goal``."""
WITHOUT = "default"
"""The value that stands for the absence of a key."""
_WHOLE = ("source", "compiler", "executor", "optimize", "memories")
_INSIDE = ("options", "quantize", "placement")
_OF_TARGETS = ("clock", "c-compiler")
_PATTERN = rf"({'|'.join(_WHOLE)}|({'|'.join(_INSIDE)})\.[^\s].*|targets\.[A-Za-z0-9_-]+\.({'|'.join(_OF_TARGETS)}))"


def _axis_problem(key: str) -> Mistake | None:
    if re.fullmatch(_PATTERN, key):
        return None
    near = suggestion(key, _WHOLE)
    inside = ", ".join(f"{name}.<key>" for name in _INSIDE)
    hint = f"use {', '.join(_WHOLE)}, {inside}, or targets.<target>.clock"
    return Mistake("unknown-axis", reason=f"{key} cannot be explored{near}", hint="" if near else hint)


AXIS = Rule(_axis_problem, {"pattern": f"^{_PATTERN}$"})
"""The key of what is explored."""


def setting_path(model: str, key: str) -> tuple[str, ...]:
    """Return the way to the value of an explored ``key`` in the project file.

    ``optimize`` is the model's own key, ``options.dim.time`` the option ``dim.time``, and ``targets.m7.clock`` the key
    of a target.
    """
    if key.startswith("targets."):
        _, target, name = key.split(".", 2)
        return "targets", target, name
    return "models", model, *key.split(".", 1)
