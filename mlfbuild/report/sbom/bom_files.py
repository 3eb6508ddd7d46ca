"""Bills of materials as files and as text: their forms, file names, and the packages that write them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from mlfbuild.core import UsageError, counted, printable, read_bytes, require_extra, text_table, write_atomic
from mlfbuild.jobs import check_replaced
from mlfbuild.report.sbom.bom import Bom, Component, Kind

CYCLONEDX, SPDX, SPDX_TAG_VALUE = "cyclonedx", "spdx", "spdx-tag-value"
SUFFIXES: Mapping[str, str] = {".cdx.json": CYCLONEDX, ".spdx.json": SPDX, ".spdx": SPDX_TAG_VALUE}
"""Forms by the file suffix that their specifications recommend."""
FORMS = tuple(SUFFIXES.values())
"""The forms of ``document``."""
# The name that CycloneDX's specification recommends beside `*.cdx.json`.
_WHOLE_NAMES: Mapping[str, str] = {"bom.json": CYCLONEDX}
_BILL = "bill of materials"
_MARKS: Mapping[str, re.Pattern[bytes]] = {
    CYCLONEDX: re.compile(rb'"bomFormat":\s*"CycloneDX"'),
    SPDX: re.compile(rb'"spdxVersion":\s*"SPDX-'),
    SPDX_TAG_VALUE: re.compile(rb"^SPDXVersion: SPDX-", re.MULTILINE),
}
_TITLES = {
    Kind.FIRMWARE: "firmware",
    Kind.MODEL: "models",
    Kind.ARCHIVE: "archives",
    Kind.PARAMETERS: "replaceable parameters",
    Kind.CODE: "generated code",
    Kind.LIBRARY: "libraries",
    Kind.TOOL: "tools",
}
_LICENSED = frozenset({Kind.MODEL, Kind.CODE, Kind.LIBRARY})
_PER_TARGET = frozenset({Kind.FIRMWARE, Kind.ARCHIVE, Kind.PARAMETERS})
"""Kinds of components that are delivered with the product and have a licence."""


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


def check_outputs(outputs: Mapping[Path, str]) -> None:
    """Raise ``ConflictError`` if one of ``outputs`` (path -> form) exists and is not a bill of its form.

    Raises ``UsageError`` if it is a folder, and ``ToolNotFoundError`` if the extra ``sbom`` is not installed.
    """
    require_extra("sbom", "sbom", "writing a bill of materials")
    for path, form in outputs.items():
        check_replaced(path, (), _BILL, f"{_BILL} as {form}", partial(_is, form))


def output_forms(paths: tuple[Path, ...], form: str | None) -> dict[Path, str]:
    """Return the form of each output: ``form``, or that of its suffix; raises ``UsageError`` for unknown suffixes.

    The keys are in the order of ``paths``. Forms are ``cyclonedx``, ``spdx`` and ``spdx-tag-value``.
    """
    return {path: form or form_of(path) for path in paths}


def _is(form: str, path: Path) -> bool:
    data = read_bytes(path, _BILL)
    # An empty file is what mktemp leaves.
    return not data or _MARKS[form].search(data) is not None


def document(bom: Bom, form: str) -> str:
    """Return the text of ``bom`` in ``form``, one of ``FORMS``."""
    # Each library is imported only for its own form: both take part of a second.
    if form == CYCLONEDX:
        from mlfbuild.report.sbom.cyclonedx import cyclonedx_json

        return cyclonedx_json(bom)
    from mlfbuild.report.sbom import spdx

    return spdx.spdx_json(bom) if form == SPDX else spdx.spdx_tag_value(bom)


def write_document(bom: Bom, path: Path, form: str) -> None:
    """Write ``bom`` to ``path`` in ``form``, one of ``FORMS``; raises ``StorageError``."""
    write_atomic(path, document(bom, form).encode())


def as_json(bom: Bom) -> dict[str, Any]:
    """Return ``bom`` as plain JSON values, for programs that use neither CycloneDX nor SPDX."""
    plain = asdict(bom)
    return {**plain, "relations": [{**one, "how": one["how"].value} for one in plain["relations"]]}


def as_text(bom: Bom) -> str:
    """Return ``bom`` as lines: each component with its version, licence, and package URL or hash.

    Kinds have a heading each, and columns are aligned over all of them. Names from models and archives are escaped.
    """
    return "\n".join(_lines(bom))


def _lines(bom: Bom) -> Iterator[str]:
    yield f"{bom.project.name} {bom.project.version}".rstrip()
    ordered = [one for kind in _TITLES for one in bom.components if one.kind is kind]
    # One table for all kinds, so that their columns are aligned, then divided by kind.
    lines = text_table(map(_row, ordered), indent=2).split("\n")
    for kind, group in itertools.groupby(zip(ordered, lines, strict=False), key=lambda item: item[0].kind):
        yield f"\n{_TITLES[kind]}"
        yield from (line for _, line in group)


def _row(one: Component) -> tuple[str, str, str, str]:
    target = one.properties.get("target") if one.kind in _PER_TARGET else None
    name = f"{one.name} for {target}" if target else one.name
    unknown = "licence unknown" if one.kind in _LICENSED else ""
    return printable(name), one.version, printable(one.license) or unknown, _identity(one)


def _identity(one: Component) -> str:
    if one.purl and one.kind is not Kind.MODEL:
        return one.purl
    digest = f"sha256:{one.sha256[:12]}... " if one.sha256 else ""
    return (digest + (counted(len(one.files), "file") if one.files else "")).rstrip()
