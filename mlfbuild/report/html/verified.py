"""The result of ``mlfbuild verify`` on the page, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mlfbuild.core import counted

_Json = Mapping[str, Any]
# The overview has one word for an image, that of its worst model.
_WORST_FIRST = ("failed", "outdated", "never", "passed")
_WORDS = {"failed": "FAILED", "outdated": "outdated", "never": "not yet", "passed": "passed"}


@dataclass(frozen=True)
class VerifiedView:
    """The check of a model, or of one of its modules."""

    state: str
    text: str
    note: str


def verified_views(model: _Json) -> Iterator[VerifiedView]:
    """Yield the checks of a model; none if it has no vectors, or if the report does not know of them."""
    for check in model.get("verify", ()):
        name = f"{check['module']}: " if check["module"] else ""
        yield VerifiedView(check["state"], f"{name}{_text(check)}", _note(check))


def _text(check: _Json) -> str:
    ran = f"{counted(check.get('cases', 0), 'case')} on {check.get('board', '')}"
    return {
        "passed": f"passed, {ran}",
        "failed": f"FAILED, {ran}",
        "outdated": f"outdated: model or vectors changed since {ran}",
        "never": "not yet: run mlfbuild verify",
    }[check["state"]]


def _note(check: _Json) -> str:
    return str(check.get("problem", "")) if check["state"] == "failed" else ""


def state_of(models: Iterable[_Json]) -> str:
    """Return the worst result of all checks of an image, empty without any."""
    states = {check["state"] for model in models for check in model.get("verify", ())}
    return next((_WORDS[state] for state in _WORST_FIRST if state in states), "")
