"""The key ``contexts`` of the first RFC, which does not define its form; no exporter ever wrote it.

These forms are read::

    [{device_type, device_id}]           the form that mlfbuild writes
    ["cpu"]  [1]  "cpu"                  device types, each with the id 0
    {"0": {device_type, device_id}}      numbered
    {"cpu": 0}                           ids by device type
"""

from __future__ import annotations

from mlfbuild.library.fields import Fields
from mlfbuild.library.types import DeviceContext

_KEY = "contexts"


def read_contexts(fields: Fields) -> tuple[DeviceContext, ...]:
    """Return ``contexts``, empty if the key is absent; raises ``InputFileError`` if it has another form."""
    if fields.is_null(_KEY):
        return ()
    if fields.holds(_KEY, str):
        return (DeviceContext(fields.text(_KEY)),)
    if fields.holds(_KEY, dict):
        by_key = fields.member(_KEY)
        return tuple(_named(by_key, key) for key in by_key.unsorted_names())
    if fields.holds_all(_KEY, str):
        return tuple(DeviceContext(name) for name in fields.texts(_KEY))
    if fields.holds_all(_KEY, int):
        return tuple(DeviceContext(str(number)) for number in fields.integers(_KEY))
    return tuple(_context(entry) for entry in fields.objects(_KEY))


def _named(by_key: Fields, key: str) -> DeviceContext:
    return _context(by_key.member(key)) if by_key.holds(key, dict) else DeviceContext(key, by_key.integer(key))


def _context(entry: Fields) -> DeviceContext:
    by_number = entry.holds("device_type", int)
    device_type = str(entry.integer("device_type")) if by_number else entry.text("device_type")
    return DeviceContext(device_type, entry.integer("device_id") if "device_id" in entry else 0)
