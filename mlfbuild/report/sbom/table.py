"""A bill of materials for people: a line a component."""

from __future__ import annotations

from collections.abc import Iterator

from mlfbuild.core import counted, printable
from mlfbuild.report.sbom.types import Bom, Component, Kind

_TITLES = {
    Kind.FIRMWARE: "firmware",
    Kind.MODEL: "models",
    Kind.ARCHIVE: "archives",
    Kind.CODE: "generated code",
    Kind.LIBRARY: "libraries",
    Kind.TOOL: "tools",
}
_LICENSED = frozenset({Kind.MODEL, Kind.CODE, Kind.LIBRARY})
"""Kinds of components that reach people with the product, and come with terms."""


def table(bom: Bom) -> str:
    """Return ``bom`` as lines: each component with its version, licence, and package URL or hash."""
    return "\n".join(_lines(bom))


def _lines(bom: Bom) -> Iterator[str]:
    yield f"{bom.project.name} {bom.project.version}".rstrip()
    rows = {one.ref: _row(one) for one in bom.components}
    widths = [max(len(row[column]) for row in rows.values()) for column in range(3)]
    for kind, title in _TITLES.items():
        refs = [one.ref for one in bom.components if one.kind is kind]
        if refs:
            yield f"\n{title}"
        for ref in refs:
            *cells, last = rows[ref]
            padded = [cell.ljust(width) for cell, width in zip(cells, widths, strict=True)]
            yield "  " + "  ".join([*padded, last]).rstrip()


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
