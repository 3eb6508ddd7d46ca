"""What the tool tells about itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mlfbuild.targets import cmake_folder


def project_schema() -> dict[str, Any]:
    """Return the JSON Schema of the project file."""
    from mlfbuild.project import json_schema

    return json_schema()


def report_schema() -> dict[str, Any]:
    """Return the JSON Schema of a report's JSON form."""
    from mlfbuild.report import report_schema as schema_of_reports

    return schema_of_reports()


def cmake_dir() -> Path:
    """Return the folder of mlfbuild's CMake package and toolchain files."""
    return cmake_folder()
