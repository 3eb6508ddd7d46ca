"""The forms of a bill of materials, the names that files of each have, and what is needed to write them."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path

from mlfbuild.core import ToolNotFoundError, UsageError
from mlfbuild.report.sbom.types import Bom

CYCLONEDX, SPDX, SPDX_TAG_VALUE = "cyclonedx", "spdx", "spdx-tag-value"
SUFFIXES: Mapping[str, str] = {".cdx.json": CYCLONEDX, ".spdx.json": SPDX, ".spdx": SPDX_TAG_VALUE}
"""Form by the suffix that its specification recommends."""
FORMS = tuple(SUFFIXES.values())
_WHOLE_NAMES: Mapping[str, str] = {"bom.json": CYCLONEDX}
_PACKAGES: Mapping[str, str] = {
    "cyclonedx": "cyclonedx-python-lib",
    "spdx_tools.spdx": "spdx-tools",
    "packageurl": "packageurl-python",
    "license_expression": "license-expression",
}
"""Distributions of the extra ``sbom``, by the module that is imported of each."""


def form_of(path: Path) -> str:
    """Return the form that the name of the file ``path`` asks for; raises ``UsageError`` for any other name."""
    name = path.name.lower()
    found = _WHOLE_NAMES.get(name) or next((form for end, form in SUFFIXES.items() if name.endswith(end)), None)
    if found is None:
        ends = ", ".join([*SUFFIXES, *_WHOLE_NAMES])
        raise UsageError(f"{path}: its name says no form of a bill of materials; let it end in {ends}, or add --as")
    return found


def require_packages() -> None:
    """Raise ``ToolNotFoundError`` where the extra ``sbom`` is not installed."""
    missing = [package for module, package in _PACKAGES.items() if not _is_there(module)]
    if missing:
        raise ToolNotFoundError(
            f"sbom: needs Python packages that are not installed: {', '.join(missing)}; pip install 'mlfbuild[sbom]'"
        )


def _is_there(module: str) -> bool:
    try:
        importlib.import_module(module)
    except ImportError:
        return False
    return True


def document(bom: Bom, form: str) -> str:
    """Return the text of ``bom`` in ``form``, one of ``FORMS``."""
    if form == CYCLONEDX:
        from mlfbuild.report.sbom.cyclonedx import cyclonedx_json

        return cyclonedx_json(bom)
    from mlfbuild.report.sbom import spdx

    return spdx.spdx_json(bom) if form == SPDX else spdx.spdx_tag_value(bom)
