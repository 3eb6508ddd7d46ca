"""The forms of a bill of materials, their file names, and the packages that write them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mlfbuild.core import UsageError, require_extra
from mlfbuild.report.sbom.bom import Bom

CYCLONEDX, SPDX, SPDX_TAG_VALUE = "cyclonedx", "spdx", "spdx-tag-value"
SUFFIXES: Mapping[str, str] = {".cdx.json": CYCLONEDX, ".spdx.json": SPDX, ".spdx": SPDX_TAG_VALUE}
"""Forms by the file suffix that their specifications recommend."""
FORMS = tuple(SUFFIXES.values())
# The name that CycloneDX's specification recommends beside `*.cdx.json`.
_WHOLE_NAMES: Mapping[str, str] = {"bom.json": CYCLONEDX}


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
    require_extra("sbom", "sbom", "writing a bill of materials")


def document(bom: Bom, form: str) -> str:
    """Return the text of ``bom`` in ``form``, one of ``FORMS``."""
    # Each library is imported only for its own form: both take part of a second.
    if form == CYCLONEDX:
        from mlfbuild.report.sbom.cyclonedx import cyclonedx_json

        return cyclonedx_json(bom)
    from mlfbuild.report.sbom import spdx

    return spdx.spdx_json(bom) if form == SPDX else spdx.spdx_tag_value(bom)
