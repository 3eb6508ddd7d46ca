"""The key ``contexts`` of the first RFC's sketch, whose form the RFC leaves open: no exporter ever wrote it.

::

    [{device_type, device_id}]           as mlfbuild keeps it
    ["cpu"]  [1]  "cpu"                  device types alone, each with the id 0
    {"0": {device_type, device_id}}      numbered
    {"cpu": 0}                           ids by device type
"""

from __future__ import annotations

from mlfbuild.library.fields import Fields
from mlfbuild.library.types import Context

_KEY = "contexts"


def read_contexts(fields: Fields) -> tuple[Context, ...]:
    """Return ``contexts``, empty where there are none; raises ``InputFileError`` for none of the forms."""
    if fields.is_null(_KEY):
        return ()
    if fields.holds(_KEY, str):
        return (Context(fields.text(_KEY)),)
    if fields.holds(_KEY, dict):
        by_key = fields.member(_KEY)
        return tuple(_named(by_key, key) for key in by_key.unsorted_names())
    if fields.holds_all(_KEY, str):
        return tuple(Context(name) for name in fields.texts(_KEY))
    if fields.holds_all(_KEY, int):
        return tuple(Context(str(number)) for number in fields.integers(_KEY))
    return tuple(_context(entry) for entry in fields.objects(_KEY))


def _named(by_key: Fields, key: str) -> Context:
    return _context(by_key.member(key)) if by_key.holds(key, dict) else Context(key, by_key.integer(key))


def _context(entry: Fields) -> Context:
    by_number = entry.holds("device_type", int)
    device_type = str(entry.integer("device_type")) if by_number else entry.text("device_type")
    return Context(device_type, entry.integer("device_id") if "device_id" in entry else 0)
