"""Convert a library to another version of the format without changing its meaning.

Little changes, because the layout of the archive follows from the version: generated files without the module's name in
theirs (versions 1 and 2) get it, and targets take the form of the version. Operators do not change. A library that the
version cannot hold is refused.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

from mlfbuild.c_analysis import MAX_TEXT, TEXT_SUFFIXES
from mlfbuild.core import UsageError, listed
from mlfbuild.library import (
    CPU_DEVICE,
    OPERATOR,
    CodegenFile,
    Library,
    Module,
    ModuleTarget,
    all_files,
    text_of,
    with_files,
)
from mlfbuild.library.metadata import Format, written_format

_UNNAMED = re.compile(r"lib[0-9]+\.\w+", re.ASCII)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]*)"', re.MULTILINE)


def convert(library: Library, version: int) -> Library:
    """Return ``library`` in ``version``: 5, 6 or 7.

    Raises ``UsageError`` if the version cannot hold the library: several modules before 7, several targets of one
    device before 6, or an operator together with other modules.
    """
    form = written_format(version)
    names = [module.name for module in library.modules]
    if len(names) > 1 and not form.modules:
        raise UsageError(
            "format-holds-one-module",
            reason=f"version {version} of Model Library Format holds one module, but the library has {len(names)}: "
            f"{listed(names)}",
            hint="write version 7",
        )
    operators = [module.name for module in library.modules if module.style == OPERATOR]
    if operators and len(names) > 1:
        raise UsageError(
            "operator-not-alone",
            place=f"module {operators[0]}",
            reason=f"an operator must be the only module of an archive, but the library has {len(names)} modules",
            hint="write one archive for each operator",
        )
    return replace(library, version=version, modules=tuple(_converted(module, form) for module in library.modules))


def _converted(module: Module, form: Format) -> Module:
    targets = _by_device(module, form) if form.targets_by_device else _listed_targets(module)
    files = all_files(module) if module.style == OPERATOR else _named(module)
    return replace(with_files(module, files), targets=targets)


def _by_device(module: Module, form: Format) -> tuple[ModuleTarget, ...]:
    """Return the targets with device types, in the order of the device types; a single target is for the CPU."""
    if len(module.targets) == 1:
        (target,) = module.targets
        return (replace(target, device=target.device or CPU_DEVICE),)
    for device, count in Counter(target.device for target in module.targets).items():
        if device is None or count > 1:
            reason = "of unknown device" if device is None else f"for device type {device}"
            raise UsageError(
                "format-holds-one-target",
                place=f"module {module.name}",
                reason=f"version {form.version} of Model Library Format holds one target per device type, but the "
                f"module has {count} {reason}",
                hint="write version 7",
            )
    return tuple(sorted(module.targets, key=lambda target: target.device or CPU_DEVICE))


def _listed_targets(module: Module) -> tuple[ModuleTarget, ...]:
    """Return the targets; a single one for the CPU needs no device type."""
    if [target.device for target in module.targets] == [CPU_DEVICE]:
        return (replace(module.targets[0], device=None),)
    return module.targets


def _named(module: Module) -> tuple[CodegenFile, ...]:
    """Return the generated files, with the module's name added to names of the form ``lib<n>``.

    No file is renamed if the code includes one of them by its name, or if a new name is taken.
    """
    files = all_files(module)
    unnamed = [file for file in files if _UNNAMED.fullmatch(file.path.name)]
    if not unnamed:
        return files
    new = {file.path: file.path.with_name(f"{module.name}_{file.path.name}") for file in unnamed}
    taken = {file.path for file in files}
    if taken & set(new.values()) or _included(module) & {path.name for path in new}:
        return files
    return tuple(replace(file, path=new.get(file.path, file.path)) for file in files)


def _included(module: Module) -> set[str]:
    """Return the names of the files that the module's code includes, without folders."""
    sources = (file.content for file in all_files(module) if file.path.suffix in TEXT_SUFFIXES)
    texts = (text_of(content) for content in sources if len(content) <= MAX_TEXT)
    return {path.split("/")[-1] for text in texts for path in _INCLUDE.findall(text)}
