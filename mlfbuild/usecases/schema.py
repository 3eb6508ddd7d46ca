"""JSON Schemas of the project file and of reports."""

from __future__ import annotations

import json
from typing import Any


def project_schema() -> dict[str, Any]:
    """Return the JSON Schema of the project file."""
    from mlfbuild.project import json_schema

    return json_schema()


def schema_text() -> str:
    """Return the text of the JSON Schema of the project file, as `mlfbuild schema` prints it."""
    return f"{json.dumps(project_schema(), indent=2)}\n"


def report_schema() -> dict[str, Any]:
    """Return the JSON Schema of reports in JSON form."""
    from mlfbuild.report import report_schema as schema_of_reports

    return schema_of_reports()
