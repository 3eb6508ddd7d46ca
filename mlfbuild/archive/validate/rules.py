"""Apply all rules to an archive."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timezone
from typing import TypeAlias

from mlfbuild.archive.read import read_files
from mlfbuild.archive.validate import code, dependency_rules, graph, layout, memory, metadata, names, params
from mlfbuild.archive.validate.codes import finding
from mlfbuild.archive.validate.findings import Finding
from mlfbuild.archive.validate.report import Report, report
from mlfbuild.archive.validate.views import ArchiveView
from mlfbuild.library import Content, parse_json

Rule: TypeAlias = Callable[[ArchiveView], Iterable[Finding]]

RULES: tuple[Rule, ...] = (
    *layout.RULES, *metadata.RULES, *names.RULES, *memory.RULES, *graph.RULES, *params.RULES, *code.RULES,
    *dependency_rules.RULES,
)  # fmt: skip

_METADATA = re.compile(r"metadata(?:-[0-9]+)?\.json", re.ASCII)
_MAX_OF_ONE_CODE = 100


def validate(files: Mapping[str, Content], where: str, now: datetime | None = None) -> Report:
    """Return the report about the archive with ``files`` (relative path without ``./`` -> content).

    ``where`` is the name of the archive; dates are compared with ``now``, by default the current time. Raises the
    errors of ``read_files`` if the files are not an archive that can be read.
    """
    library = read_files(files, where)
    member = next(path for path in files if _METADATA.fullmatch(path))
    document = parse_json(bytes(files[member]), where)
    assert isinstance(document, dict)  # because read_files accepted it
    archive = ArchiveView(files, member, document, library, now or datetime.now(timezone.utc))
    found = (item for rule in RULES for item in rule(archive))
    return report(where, _limited(found))


def _limited(found: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the first findings of each code, and one more with the number of findings that are left out."""
    counts: Counter[str] = Counter()
    for item in found:
        counts[item.code] += 1
        if counts[item.code] <= _MAX_OF_ONE_CODE:
            yield item
    for name, count in counts.items():
        if count > _MAX_OF_ONE_CODE:
            yield finding(name, "elsewhere", f"{count - _MAX_OF_ONE_CODE:,} more findings like these are left out")
