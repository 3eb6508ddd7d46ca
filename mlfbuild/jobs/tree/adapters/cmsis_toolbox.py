"""Make the software layer of a project of CMSIS-Toolbox: a group of files for each model.

Keys: https://github.com/Open-CMSIS-Pack/cmsis-toolbox/blob/main/docs/YML-Input-Format.md
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from mlfbuild.jobs.tree.adapters.package import DESCRIPTION, NAME, NOTICE, LibraryFiles, ModelFiles, Package

RESERVED: dict[str, str] = {}

_LEVELS = {"-O2": "balanced", "-Os": "size", "-O3": "speed"}
"""The names of csolution for the levels of GCC; its other compilers also have levels of these names."""


def files(package: Package) -> dict[str, str]:
    """Return the files of the layer: path -> text."""
    public = [library for library in package.libraries if library.public]
    folders = [path for model in package.models for path in model.include_dirs]
    folders += [path for library in public for path in library.include_dirs]
    groups = [_model(model, package) for model in package.models]
    groups += [_library(library) for library in package.libraries if library.sources]
    text = f"# {NOTICE}\nlayer:\n  description: {DESCRIPTION}, made for {package.cpu}\n"
    text += _list(2, "add-path", dict.fromkeys(folders))
    text += "  groups:\n" + "".join(groups) if groups else ""
    return {f"{NAME}.clayer.yml": text}


def _model(model: ModelFiles, package: Package) -> str:
    needed = [path for library in package.libraries if library.name in model.needs for path in library.include_dirs]
    text = f"    - group: Model {model.name}\n"
    text += f"      optimize: {_LEVELS[model.level]}\n" if model.level else ""
    text += "      warnings: off\n" if "-w" in model.options else ""
    text += _list(6, "add-path", dict.fromkeys([*model.private_include_dirs, *needed]))
    return text + _files([*model.sources, *model.objects])


def _library(library: LibraryFiles) -> str:
    text = f"    - group: Library {library.name}\n      warnings: off\n"
    text += _list(6, "add-path", library.include_dirs)
    if library.own_options:
        text += f"      misc:\n        - C-CPP: {json.dumps(library.own_options)}\n"
    return text + _files(library.sources)


def _files(paths: Sequence[str]) -> str:
    return "      files:\n" + "".join(f"        - file: {path}\n" for path in paths) if paths else ""


def _list(indent: int, key: str, values: Iterable[str]) -> str:
    lines = "".join(f"{' ' * indent}  - {value}\n" for value in values)
    return f"{' ' * indent}{key}:\n{lines}" if lines else ""
