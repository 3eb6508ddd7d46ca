"""Describe the device contexts of a module, which the first RFC of the format proposed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from mlfbuild.library import DeviceContext


def context_facts(context: DeviceContext) -> dict[str, Any]:
    """Return ``context`` as JSON-ready data; unknown values are null."""
    return {
        "device_type": context.device_type,
        "device_id": context.device_id,
        "compiler": context.compiler or None,
        "config": json.loads(context.config) if context.config else None,
        "target": context.target or None,
    }


def context_text(facts: dict[str, Any], code: Callable[[str], str]) -> str:
    """Return ``context_facts`` in one line; ``code`` formats text from the archive."""
    words = [code(facts["device_type"]), f"id {facts['device_id']}"]
    words += [f"{key} {code(facts[key])}" for key in ("compiler", "target") if facts[key]]
    if facts["config"] is not None:
        words.append(f"config {code(json.dumps(facts['config'], sort_keys=True))}")
    return ", ".join(words)
