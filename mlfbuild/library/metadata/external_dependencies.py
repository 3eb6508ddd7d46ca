"""The key ``external_dependencies``, which is a member of the key ``mlfbuild`` in versions before 5."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlfbuild.library.fields import Fields
from mlfbuild.library.metadata.unknown import by_key, collected
from mlfbuild.library.value import ExternalDependency

DEPENDENCIES = "external_dependencies"


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
    return [
        {
            "short_name": item.short_name,
            "url": item.url,
            "url_type": item.url_type,
            "version_spec": item.version_spec,
            **by_key(item.unknown),
        }
        for item in dependencies
    ]
