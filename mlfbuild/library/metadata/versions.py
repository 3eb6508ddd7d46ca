"""The versions of Model Library Format: keys of the metadata and paths of files in the archive.

Each version is defined by its changes to the one before it, taken from TVM's ``model_library_format.py``:

====  =================  ==========================================================================
1     March 2021         nightly builds between TVM 0.7 and 0.8, and the sketch of the first RFC
2     May 2021           memory of functions, not only of a graph's storage
3     June 2021          the module's name in the names of files and symbols
4     July 2021          operators as well as models, distinguished by the key ``style``
5     TVM 0.8            runtimes are called executors
6     May 2022           any number of targets, in order
7     TVM 0.9 to 0.18    many modules; operators unchanged
====  =================  ==========================================================================

TVM often changed the format without a new version number. Therefore the reader looks for the keys that exist, and uses
the version only if a document has two possible readings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from mlfbuild.core import UsageError


@dataclass(frozen=True)
class Format:
    """One version. Paths are relative to the archive's root; ``{module}`` in them stands for a module's name."""

    version: int
    executors: str
    """Key of the list of executors."""
    graph: str
    """The graph executor's JSON."""
    program: str
    """The text of the program before code generation, of a full model."""
    codegen_name: str
    """Name, without suffix, of the ``{n}``-th generated source or object of a full model."""
    targets_by_device: bool = True
    """Whether ``target`` is an object by device type; otherwise it is a list."""
    memory_of_functions: bool = False
    """Whether ``memory`` is an object of ``functions`` and ``sids``; otherwise it is a list of storage ids."""
    dependencies: bool = False
    """Whether modules have ``external_dependencies`` (TVM 0.9 and later, in versions 5 to 7)."""
    operators: bool = False
    """Whether the key ``style`` distinguishes operators from full models; otherwise all are full models."""
    modules: bool = False
    """Whether full models are in ``modules`` by name; otherwise the keys of the only one are at the top level."""
    tensors: bool = False
    """Whether ``memory.functions.main[]`` has ``inputs`` and ``outputs`` (TVM 0.11 and later)."""

    def graph_path(self, module: str) -> str:
        """Return the path of the graph of ``module``."""
        return self.graph.format(module=module)

    def program_path(self, module: str) -> str:
        """Return the path of the program text of ``module``."""
        return self.program.format(module=module)


_V1 = Format(
    1, executors="runtimes", graph="runtime-config/graph/graph.json", program="relay.txt", codegen_name="lib{n}"
)
_V2 = replace(_V1, version=2, memory_of_functions=True)
_V3 = replace(_V2, version=3, codegen_name="{module}_lib{n}")
_V4 = replace(_V3, version=4, operators=True, program="src/relay.txt")
_V5 = replace(
    _V4, version=5, executors="executors", graph="executor-config/graph/graph.json", dependencies=True
)  # fmt: skip
_V6 = replace(_V5, version=6, targets_by_device=False)
_V7 = replace(
    _V6, version=7, modules=True, tensors=True, graph="executor-config/graph/{module}.graph",
    program="src/{module}.relay",
)  # fmt: skip

FORMATS: Mapping[int, Format] = {entry.version: entry for entry in (_V1, _V2, _V3, _V4, _V5, _V6, _V7)}
CURRENT = 7


def written_format(version: int) -> Format:
    """Return the version ``version``; raises ``UsageError`` if it does not exist.

    All versions that exist can be written, from 1 to ``CURRENT``. Use it for versions that a user has chosen.
    """
    if version not in FORMATS:
        raise UsageError(
            "format-version-not-written",
            reason=f"version {version} of Model Library Format does not exist",
            hint=f"choose one of {', '.join(map(str, FORMATS))}",
        )
    return FORMATS[version]
