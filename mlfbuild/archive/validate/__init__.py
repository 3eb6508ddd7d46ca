"""Validate an archive with the rules of Model Library Format.

``rules`` applies the rules to the views in ``views``. They are in modules named after their subjects: ``layout``
(files), ``metadata`` (keys, types and dates, by the ``schema`` of the version), ``names`` (names, parameters and
dependencies), ``memory``, ``graph`` and ``code``. Each rule looks at the archive or at one module and yields findings,
whose codes and texts are in ``codes``::

    report = validate(members(path.open("rb"), str(path)), str(path))
    print(report.text())

An archive that cannot be read is not a finding: reading it raises an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.archive.validate.codes import CODES, Finding, FindingKind, Severity
    from mlfbuild.archive.validate.rules import Report, validate
else:
    __getattr__ = lazy_attributes(__name__)
