"""The forms of a bill of materials, their file names, and the packages that write them."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path

from mlfbuild.core import ToolNotFoundError, UsageError
from mlfbuild.report.sbom.types import Bom

CYCLONEDX, SPDX, SPDX_TAG_VALUE = "cyclonedx", "spdx", "spdx-tag-value"
SUFFIXES: Mapping[str, str] = {".cdx.json": CYCLONEDX, ".spdx.json": SPDX, ".spdx": SPDX_TAG_VALUE}
"""Forms by the file suffix that their specifications recommend."""
FORMS = tuple(SUFFIXES.values())
_WHOLE_NAMES: Mapping[str, str] = {"bom.json": CYCLONEDX}
_PACKAGES: Mapping[str, str] = {
    "cyclonedx": "cyclonedx-python-lib",
    "spdx_tools.spdx": "spdx-tools",
    "packageurl": "packageurl-python",
    "license_expression": "license-expression",
}
"""Packages of the extra ``sbom`` by the module that is imported from each."""


def form_of(path: Path) -> str:
    """Return the form by the name of the file ``path``; raises ``UsageError`` for any other name."""
    name = path.name.lower()
    found = _WHOLE_NAMES.get(name) or next((form for end, form in SUFFIXES.items() if name.endswith(end)), None)
    if found is None:
        ends = ", ".join([*SUFFIXES, *_WHOLE_NAMES])
        raise UsageError(
            "unknown-bill-suffix",
            place=path,
            reason="the name of the file does not determine the form of the bill of materials",
            hint=f"use a name that ends in {ends}, or add --as",
        )
    return found


def require_packages() -> None:
    """Raise ``ToolNotFoundError`` if the extra ``sbom`` is not installed."""
    missing = [package for module, package in _PACKAGES.items() if not _is_there(module)]
    if missing:
        raise ToolNotFoundError(
            "extra-not-installed",
            place="sbom",
            reason=f"it needs Python packages that are not installed: {', '.join(missing)}",
            hint="pip install 'mlfbuild[sbom]'",
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
