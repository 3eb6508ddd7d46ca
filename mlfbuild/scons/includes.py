"""Dependencies of generated C sources, without scanning them.

SCons reads every source and every included header to find dependencies, and keeps a node for each. The includes of
sources from the native compiler are known: their own header, kernels, whose folder changes with mlfbuild, and headers
of the C library, which the firmware may replace.
"""

from __future__ import annotations

import copy
from typing import Any

from SCons.Builder import BuilderBase, CompositeBuilder
from SCons.Node.FS import find_file
from SCons.Scanner import FindPathDirs, ScannerBase
from SCons.Tool import SourceFileScanner

SYSTEM_HEADERS = (
    "assert.h", "complex.h", "ctype.h", "errno.h", "fenv.h", "float.h", "inttypes.h", "iso646.h", "limits.h",
    "locale.h", "math.h", "setjmp.h", "signal.h", "stdarg.h", "stdbool.h", "stddef.h", "stdint.h", "stdio.h",
    "stdlib.h", "string.h", "tgmath.h", "time.h", "wchar.h", "wctype.h",
    "arm_acle.h", "arm_mve.h", "arm_neon.h",
)  # fmt: skip
"""Headers of C99 (ISO/IEC 9899:1999, 7.1.2) and of Arm's C extensions, the only ones that native archives require."""
_FIRMWARE_PATH = "MLFFIRMWAREPATH"
"""The include folders of the firmware."""

_headers: dict[Any, list[Any]] = {}
"""The nodes of the headers that change with a source, by the source's node."""
_of_models: set[Any] = set()
"""All of these headers."""
_system: dict[tuple[Any, ...], list[Any]] = {}
"""The firmware's own headers among them, by its include folders."""


def known_object(env: Any, target: Any, source: Any, headers: list[Any], theirs: list[Any], **overrides: Any) -> Any:
    """Return the node of an object as ``env.StaticObject``, if of its included files only ``headers`` can change.

    ``theirs`` are the include folders of the firmware.
    """
    # Users and other tools may have replaced this builder.
    builder = env["BUILDERS"].get("StaticObject")
    if isinstance(builder, CompositeBuilder):
        builder = builder.builder
    if not isinstance(builder, BuilderBase):  # a user's builder, which may work in any way
        return env.StaticObject(target, source, **overrides)
    _headers[source] = headers
    _of_models.update(headers)
    return _knowing(builder)(env, [target], [source], **overrides, **{_FIRMWARE_PATH: theirs})


def _knowing(builder: BuilderBase) -> BuilderBase:
    """Return ``builder`` with the scanner of this module instead of SCons'."""
    # A copy, because the builder belongs to all environments.
    knowing = copy.copy(builder)
    knowing.name = "StaticObject"
    knowing.source_scanner = _SCANNER
    return knowing


def _includes(node: Any, env: Any, path: tuple[Any, ...]) -> list[Any]:
    # A source whose includes are known is never opened by SCons.
    if node in _headers:
        return [*_headers[node], *_of_the_system(path)]
    scanner = SourceFileScanner.select(node)
    return list(scanner(node, env, path)) if scanner else []


def _of_the_system(path: tuple[Any, ...]) -> list[Any]:
    # Searched once for each list of folders, not for each source: most sources of a firmware share one.
    if path not in _system:
        found = (find_file(name, path) for name in SYSTEM_HEADERS) if path else ()
        _system[path] = [node for node in found if node is not None]
    return _system[path]


def _of_the_firmware(nodes: list[Any]) -> list[Any]:
    """Return the ``nodes`` to scan in turn: all but the headers of models."""
    return [node for node in nodes if node not in _of_models]


_SCANNER = ScannerBase(
    _includes, name="MlfIncludes", path_function=FindPathDirs(_FIRMWARE_PATH), recursive=_of_the_firmware
)
