"""Bills of materials as files and as text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from mlfbuild.core import read_bytes, write_atomic
from mlfbuild.jobs import check_replaced
from mlfbuild.report.sbom import forms
from mlfbuild.report.sbom.bom import Bom
from mlfbuild.report.sbom.table import table

FORMS = forms.FORMS
"""The forms of ``document``."""
_BILL = "bill of materials"
_MARKS: Mapping[str, re.Pattern[bytes]] = {
    forms.CYCLONEDX: re.compile(rb'"bomFormat":\s*"CycloneDX"'),
    forms.SPDX: re.compile(rb'"spdxVersion":\s*"SPDX-'),
    forms.SPDX_TAG_VALUE: re.compile(rb"^SPDXVersion: SPDX-", re.MULTILINE),
}


def check_outputs(outputs: Mapping[Path, str]) -> None:
    """Raise ``ConflictError`` if one of ``outputs`` (path -> form) exists and is not a bill of its form.

    Raises ``UsageError`` if it is a folder, and ``ToolNotFoundError`` if a package is missing.
    """
    forms.require_packages()
    for path, form in outputs.items():
        check_replaced(path, (), _BILL, f"{_BILL} as {form}", partial(_is, form))


def output_forms(paths: tuple[Path, ...], form: str | None) -> dict[Path, str]:
    """Return the form of each output: ``form``, or that of its suffix; raises ``UsageError`` for unknown suffixes."""
    return {path: form or forms.form_of(path) for path in paths}


def _is(form: str, path: Path) -> bool:
    data = read_bytes(path, _BILL)
    # An empty file is what mktemp leaves.
    return not data or _MARKS[form].search(data) is not None


def document(bom: Bom, form: str) -> str:
    """Return the text of ``bom`` in ``form``, one of ``FORMS``."""
    return forms.document(bom, form)


def write_document(bom: Bom, path: Path, form: str) -> None:
    """Write ``bom`` to ``path`` in ``form``, one of ``FORMS``; raises ``StorageError``."""
    write_atomic(path, forms.document(bom, form).encode())


def as_text(bom: Bom) -> str:
    """Return ``bom`` as text: a line for each component."""
    return table(bom)


def as_json(bom: Bom) -> dict[str, Any]:
    """Return ``bom`` as plain JSON values, for programs that use neither CycloneDX nor SPDX."""
    plain = asdict(bom)
    return {**plain, "relations": [{**one, "how": one["how"].value} for one in plain["relations"]]}
