"""Convert a library to another version of the format without changing its meaning.

Little changes, because the layout of the archive follows from the version: the names of generated files begin with the
module's name from version 3 on, and targets take the form of the version. Operators do not change. A library that the
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

_NUMBERED = r"lib[0-9]+\.\w+"
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]*)"', re.MULTILINE)


def convert(library: Library, version: int) -> Library:
    """Return ``library`` in ``version``: 1 to 7.

    Raises ``UsageError`` if the version cannot hold the library: several modules before 7, several targets of one
    device before 6, an operator before 4, or an operator together with other modules.
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
    if operators and not form.operators:
        raise UsageError(
            "format-holds-no-operator",
            place=f"module {operators[0]}",
            reason=f"version {version} of Model Library Format cannot hold single operators",
            hint="write version 4 or later",
        )
    return replace(library, version=version, modules=tuple(_converted(module, form) for module in library.modules))


def _converted(module: Module, form: Format) -> Module:
    targets = _by_device(module, form) if form.targets_by_device else _listed_targets(module)
    files = all_files(module) if module.style == OPERATOR else _renamed(module, form)
    return replace(with_files(module, files), targets=targets)


def _by_device(module: Module, form: Format) -> tuple[ModuleTarget, ...]:
    """Return the targets, which must have different device types; a single target is for the CPU."""
    if len(module.targets) == 1:
        (target,) = module.targets
        return (replace(target, device=CPU_DEVICE if target.device is None else target.device),)
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
    return module.targets


def _listed_targets(module: Module) -> tuple[ModuleTarget, ...]:
    """Return the targets; a single one for the CPU needs no device type."""
    if [target.device for target in module.targets] == [CPU_DEVICE]:
        return (replace(module.targets[0], device=None),)
    return module.targets


def _renamed(module: Module, form: Format) -> tuple[CodegenFile, ...]:
    """Return the generated files with the names of the version: ``lib<n>``, from version 3 on after the module's name.

    No file is renamed if the code includes one of them by its name, or if a new name is taken.
    """
    files = all_files(module)
    prefix = f"{module.name}_"
    old, new = ("", prefix) if "{module}" in form.codegen_name else (prefix, "")
    numbered = re.compile(re.escape(old) + _NUMBERED, re.ASCII)
    names = {
        file.path: file.path.with_name(new + file.path.name.removeprefix(old))
        for file in files
        if numbered.fullmatch(file.path.name)
    }
    taken = {file.path for file in files}
    if taken & set(names.values()) or (names and _included(module) & {path.name for path in names}):
        return files
    return tuple(replace(file, path=names.get(file.path, file.path)) for file in files)


def _included(module: Module) -> set[str]:
    """Return the names of the files that the module's code includes, without folders."""
    sources = (file.content for file in all_files(module) if file.path.suffix in TEXT_SUFFIXES)
    texts = (text_of(content) for content in sources if len(content) <= MAX_TEXT)
    return {path.split("/")[-1] for text in texts for path in _INCLUDE.findall(text)}
