"""Checks of the limits of evaluations in a project file: of the right side, in range, with what they compare to.

Like those in ``references``, they work on the plain values and skip values of the wrong type.
"""

from __future__ import annotations

from mlfbuild.core import Mistake
from mlfbuild.evaluation import LIMITS, limit_problem
from mlfbuild.project.document import Document, mapping_in

_DROP = "max-drop"


def check_evaluations(document: Document) -> None:
    """Add a problem to ``document`` for each limit that does not fit its metric, or has nothing to compare with."""
    for name, model in document.entries("models"):
        keys = mapping_in(model, "evaluate")
        for key in LIMITS:
            mistake = limit_problem(key, keys) if key in keys else None
            if mistake is None and key == _DROP and key in keys and "quantize" not in model:
                mistake = Mistake(
                    "drop-without-float-source",
                    reason="there is no float network to compare with, because this build does not quantise the model",
                    hint="use a float model with quantize, or write at-least",
                )
            if mistake is not None:
                document.add(("models", name, "evaluate", key), mistake)
