"""Turn the folder of a target into a package of another build system, such as Zephyr or ESP-IDF.

Each system has a module with templates for a few files beside the trees, which name the files in the trees::

    zephyr       zephyr/module.yml, zephyr/CMakeLists.txt, zephyr/Kconfig
    rt-thread    package.json, Kconfig, README.md, .gitignore; SConscript asks Kconfig's switches
    esp-idf      CMakeLists.txt, idf_component.yml
    platformio   library.json

All systems use different files, so that one folder can be a package of several systems.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING

from mlfbuild.build.tree.adapters import esp_idf, platformio, rt_thread, zephyr
from mlfbuild.build.tree.adapters.package import NO_VERSION as NO_VERSION, Package as Package
from mlfbuild.core import UsageError, lazy_attributes

if TYPE_CHECKING:
    from mlfbuild.build.tree.adapters.package import ModelFiles as ModelFiles, model_files as model_files
else:
    __getattr__ = lazy_attributes(__name__)


ADAPTERS: dict[str, ModuleType] = {
    "zephyr": zephyr,
    "rt-thread": rt_thread,
    "esp-idf": esp_idf,
    "platformio": platformio,
}
"""System -> module with ``files(package)`` and ``RESERVED``, a mapping of forbidden model names to reasons."""


def adapter_files(systems: Sequence[str], package: Package) -> dict[str, bytes]:
    """Return the files that make ``package`` one of ``systems``: path relative to the folder -> content.

    Raises ``UnsupportedModelError`` if a system does not support the files of a model.
    """
    return {path: text.encode() for name in systems for path, text in ADAPTERS[name].files(package).items()}


def adapter_paths(systems: Sequence[str]) -> list[str]:
    """Return the paths of ``adapter_files``, which are the same for all packages."""
    return list(adapter_files(systems, Package("", ())))


def check_model_names(systems: Sequence[str], models: Sequence[str]) -> None:
    """Raise ``UsageError`` for a model whose tree would have the path of a file of one of ``systems``."""
    for name in systems:
        for model in models:
            if reason := ADAPTERS[name].RESERVED.get(model):
                raise UsageError(
                    "reserved-model-name",
                    place=f"model {model!r}",
                    reason=f"cannot have this name in a package for {name}: {reason}",
                    hint="choose another name",
                )
