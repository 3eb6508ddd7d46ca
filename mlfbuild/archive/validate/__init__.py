"""Judging an archive: every rule of Model Library Format, as findings with a code, a place and what to do.

An archive that cannot be read is no matter of findings: reading it raises. What can be read is judged by ``RULES``, one
after the other, each of which looks at everything and knows nothing of the rest.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timezone
from typing import TYPE_CHECKING, TypeAlias

from mlfbuild.archive.read import read_files
from mlfbuild.archive.validate import code, dependencies, graph, layout, memory, metadata, names, params
from mlfbuild.archive.validate.codes import finding
from mlfbuild.archive.validate.context import Context
from mlfbuild.archive.validate.report import Report as Report, report
from mlfbuild.archive.validate.types import Finding as Finding
from mlfbuild.core import lazy_attributes
from mlfbuild.library import Content, parse_json

if TYPE_CHECKING:
    from mlfbuild.archive.validate.codes import CODES as CODES, Code as Code
    from mlfbuild.archive.validate.types import Severity as Severity
else:
    __getattr__ = lazy_attributes(__name__)


Rule: TypeAlias = Callable[[Context], Iterable[Finding]]

RULES: tuple[Rule, ...] = (
    *layout.RULES, *metadata.RULES, *names.RULES, *memory.RULES, *graph.RULES, *params.RULES, *code.RULES,
    *dependencies.RULES,
)  # fmt: skip

_METADATA = re.compile(r"metadata(?:-[0-9]+)?\.json", re.ASCII)
_MAX_OF_ONE_CODE = 100


def validate(files: Mapping[str, Content], where: str, now: datetime | None = None) -> Report:
    """Return what is wrong with the archive that holds ``files`` (relative path without ``./`` -> content).

    ``where`` names the archive; ``now`` is the time that dates are judged by, by default the clock's. Raises
    ``InputFileError`` as ``read_files`` does where the files are no archive that can be read.
    """
    library = read_files(files, where)
    member = next(path for path in files if _METADATA.fullmatch(path))
    document = parse_json(bytes(files[member]), where)
    assert isinstance(document, dict)  # it has been read as one
    context = Context(files, member, document, library, now or datetime.now(timezone.utc))
    found = (item for rule in RULES for item in rule(context))
    return report(where, _limited(found))


def _limited(found: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the first findings of each code, and one that counts those left out."""
    counts: Counter[str] = Counter()
    for item in found:
        counts[item.code] += 1
        if counts[item.code] <= _MAX_OF_ONE_CODE:
            yield item
    for name, count in counts.items():
        if count > _MAX_OF_ONE_CODE:
            yield finding(name, "elsewhere", f"{count - _MAX_OF_ONE_CODE:,} more findings like these are left out")
