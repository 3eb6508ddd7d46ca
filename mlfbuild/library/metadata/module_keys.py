"""Two keys of a module that are members of the key ``mlfbuild`` in some versions.

``external_dependencies`` is one in versions before 5. ``contexts`` is a key of the first RFC, which does not define its
form; no exporter ever wrote it. These forms are read::

    [{device_type, device_id, compiler, config, target}]   the form that mlfbuild writes
    ["cpu"]  [1]  "cpu"                                    device types, each with the id 0
    {"0": {device_type, ...}}                              numbered
    {"cpu": 0}                                             ids by device type

All members but ``device_type`` may be absent.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from mlfbuild.library.fields import Fields
from mlfbuild.library.metadata.unknown import by_key, collected, json_text
from mlfbuild.library.value import DeviceContext, ExternalDependency

DEPENDENCIES = "external_dependencies"
_DEPENDENCY_KEYS = ("short_name", "url", "url_type", "version_spec")


def read_dependencies(fields: Fields) -> tuple[ExternalDependency, ...]:
    """Return the list, empty if it is absent; raises ``InputFileError`` if a value is missing or has another type."""
    return tuple(_dependency(entry) for entry in fields.objects(DEPENDENCIES))


def _dependency(entry: Fields) -> ExternalDependency:
    # Places of unknown fields are relative to the dependency, which moves between the module and the key `mlfbuild` by
    # version.
    entry.put_at()
    known = (entry.text("short_name"), entry.text("url"), entry.text("url_type"))
    version = entry.optional_text("version_spec") or ""
    unknown = collected(entry.unread(), entry)
    # They stay with the dependency, so the document must not report them a second time.
    entry.skip(*entry.names())
    return ExternalDependency(*known, version, unknown)


def dependencies_json(dependencies: Sequence[ExternalDependency]) -> list[dict[str, Any]]:
    """Return the list as JSON values, with the unknown fields in their places."""
    return [{**{key: getattr(item, key) for key in _DEPENDENCY_KEYS}, **by_key(item.unknown)} for item in dependencies]


_KEY = "contexts"


def read_contexts(fields: Fields) -> tuple[DeviceContext, ...]:
    """Return ``contexts``, empty if the key is absent; raises ``InputFileError`` if it has another form."""
    if fields.is_null(_KEY):
        fields.skip(_KEY)
        return ()
    if fields.holds(_KEY, str):
        return (DeviceContext(fields.text(_KEY)),)
    if fields.holds(_KEY, dict):
        by_key = fields.member(_KEY)
        return tuple(_named(by_key, key, index) for index, key in enumerate(by_key.unsorted_names()))
    if fields.holds_all(_KEY, str):
        return tuple(DeviceContext(name) for name in fields.texts(_KEY))
    if fields.holds_all(_KEY, int):
        return tuple(DeviceContext(str(number)) for number in fields.integers(_KEY))
    return tuple(_context(entry, index) for index, entry in enumerate(fields.objects(_KEY)))


def _named(by_key: Fields, key: str, index: int) -> DeviceContext:
    if by_key.holds(key, dict):
        return _context(by_key.member(key), index)
    return DeviceContext(key, by_key.integer(key))


def _context(entry: Fields, index: int) -> DeviceContext:
    entry.put_at("mlfbuild", _KEY, str(index))
    by_number = entry.holds("device_type", int)
    device_type = str(entry.integer("device_type")) if by_number else entry.text("device_type")
    # Any JSON value is accepted for `config`, so it is read without a type and kept as text.
    config = entry.raw("config")
    if config is not None:
        entry.skip("config")
    return DeviceContext(
        device_type,
        entry.integer("device_id") if "device_id" in entry else 0,
        entry.text("compiler") if entry.holds("compiler", str) else "",
        "" if config is None else json_text(config, entry, "config"),
        entry.text("target") if entry.holds("target", str) else "",
    )


def context_json(context: DeviceContext) -> dict[str, Any]:
    """Return ``context`` as JSON values, without unknown ones.

    ``read_contexts`` reads this form back.
    """
    more = {key: getattr(context, key) for key in ("compiler", "target") if getattr(context, key)}
    config = {"config": json.loads(context.config)} if context.config else {}
    return {"device_type": context.device_type, "device_id": context.device_id, **more, **config}
