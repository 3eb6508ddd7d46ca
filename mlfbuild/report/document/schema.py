"""The JSON form of a report as JSON Schema, for programs that read it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FORMAT = 2
"""Version of the JSON form."""


def report_schema() -> dict[str, Any]:
    """Return the JSON Schema of the output of ``mlfbuild report --format json``, the file ``report.schema.json``."""
    schema: dict[str, Any] = json.loads(Path(__file__).with_name("report.schema.json").read_text(encoding="utf-8"))
    return schema
