"""The project types that the server generates, by their names in TVM's own servers."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from mlfbuild.usecases.init import PROJECT_API, PROJECT_API_EXAMPLE

PROJECT_TYPES: Mapping[str, str] = MappingProxyType(
    {"host_driven": PROJECT_API, "example_project": PROJECT_API_EXAMPLE}
)
"""Templates of ``mlfbuild init`` by project type; the first is the default."""
