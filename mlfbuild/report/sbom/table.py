"""A bill of materials as text: a line for each component."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from mlfbuild.core import counted, printable, text_table
from mlfbuild.report.sbom.bom import Bom, Component, Kind

_TITLES = {
    Kind.FIRMWARE: "firmware",
    Kind.MODEL: "models",
    Kind.ARCHIVE: "archives",
    Kind.CODE: "generated code",
    Kind.LIBRARY: "libraries",
    Kind.TOOL: "tools",
}
_LICENSED = frozenset({Kind.MODEL, Kind.CODE, Kind.LIBRARY})
"""Kinds of components that are delivered with the product and have a licence."""


def table(bom: Bom) -> str:
    """Return ``bom`` as lines: each component with its version, licence, and package URL or hash."""
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
    target = one.properties.get("target") if one.kind in {Kind.FIRMWARE, Kind.ARCHIVE} else None
    name = f"{one.name} for {target}" if target else one.name
    unknown = "licence unknown" if one.kind in _LICENSED else ""
    return printable(name), one.version, printable(one.license) or unknown, _identity(one)


def _identity(one: Component) -> str:
    if one.purl and one.kind is not Kind.MODEL:
        return one.purl
    digest = f"sha256:{one.sha256[:12]}... " if one.sha256 else ""
    return (digest + (counted(len(one.files), "file") if one.files else "")).rstrip()
