"""Turn the folder of a target into a package of another build system, such as Zephyr or ESP-IDF.

Each system has a module with templates for a few files beside the trees, which name the files in the trees::

    zephyr         zephyr/module.yml, zephyr/CMakeLists.txt, zephyr/Kconfig
    rt-thread      package.json, Kconfig, README.md, .gitignore; SConscript asks Kconfig's switches
    esp-idf        CMakeLists.txt, idf_component.yml
    platformio     library.json
    arduino        library.properties; src/ with a file for each source and header
    cmsis-toolbox  mlf_models.clayer.yml
    nuttx          nuttx/Kconfig, nuttx/Make.defs, nuttx/Makefile, nuttx/CMakeLists.txt, and a file for each source
    rust           Cargo.toml, rust/build.rs, rust/lib.rs

All systems use different files, so that one folder can be a package of several systems.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from mlfbuild.core import UsageError, lazy_attributes

# Few trees are packages: the others need the names of systems only.
if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.jobs.tree.adapters.package import NO_VERSION, ModelFiles, Package
else:
    __getattr__ = lazy_attributes(__name__)

ADAPTERS = (
    "zephyr",
    "rt-thread",
    "esp-idf",
    "platformio",
    "arduino",
    "cmsis-toolbox",
    "nuttx",
    "rust",
)
"""The systems, each with a module of its name."""


def adapter(system: str) -> ModuleType:
    """Return the module of ``system``, which most builds do not need.

    It has ``files(package)`` and ``RESERVED``, a mapping of forbidden model names to reasons. If the names of its files
    depend on the models, they are in its ``FOLDER``.
    """
    return importlib.import_module(f"{__name__}.{system.replace('-', '_')}")


def adapter_files(systems: Sequence[str], package: Package) -> dict[str, bytes]:
    """Return the files that make ``package`` one of ``systems``: path relative to the folder -> content.

    Raises ``UnsupportedModelError`` if a system does not support the files of a model.
    """
    return {path: text.encode() for name in systems for path, text in adapter(name).files(package).items()}


def adapter_paths(systems: Sequence[str], *, budgeted: bool = False) -> list[str]:
    """Return the paths of ``adapter_files`` that are the same for all packages that are, or are not, ``budgeted``."""
    if not systems:
        return []
    from mlfbuild.jobs.tree.adapters.package import Package

    return list(adapter_files(systems, Package("", (), budgeted=budgeted)))


def adapter_folders(systems: Sequence[str]) -> list[str]:
    """Return the folders of the other paths, which contain nothing else."""
    return [folder for name in systems if (folder := getattr(adapter(name), "FOLDER", ""))]


def models_of_package(directory: Path, models: Iterable[str], systems: Sequence[str]) -> tuple[ModelFiles, ...]:
    """Return the files of ``models`` in ``directory``, with their interfaces if one of ``systems`` needs them.

    Raises ``InputFileError`` for an incomplete tree, and as ``interfaces``.
    """
    from mlfbuild.jobs.tree.adapters.interface import interfaces
    from mlfbuild.jobs.tree.adapters.package import model_files

    found = tuple(model_files(directory, model) for model in sorted(models))
    if "rust" not in systems:
        return found
    return tuple(replace(files, interfaces=interfaces(directory, files.name)) for files in found)


def check_model_names(systems: Sequence[str], models: Sequence[str]) -> None:
    """Raise ``UsageError`` for a model whose tree would have the path of a file of one of ``systems``."""
    for name in systems:
        for model in models:
            if reason := adapter(name).RESERVED.get(model):
                raise UsageError(
                    "reserved-model-name",
                    place=f"model {model!r}",
                    reason=f"cannot have this name in a package for {name}: {reason}",
                    hint="choose another name",
                )
