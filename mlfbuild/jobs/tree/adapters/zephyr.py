"""Make the files of a module of Zephyr, with one library and one Kconfig switch per model.

Files: https://docs.zephyrproject.org/latest/develop/modules.html
"""

from __future__ import annotations

from mlfbuild.jobs.tree.adapters.package import Package
from mlfbuild.jobs.tree.build_text import rendered

RESERVED = {"zephyr": "the folder of the module's files has this name"}


def files(package: Package) -> dict[str, str]:
    """Return the files of the module: path -> text.

    Paths are relative to the folder of the trees, which becomes the module. ``EXTRA_ZEPHYR_MODULES`` or a west manifest
    names that folder.
    """
    return {
        "zephyr/module.yml": rendered("zephyr/module.yml"),
        "zephyr/Kconfig": rendered("zephyr/Kconfig", models=package.models, cpu=package.cpu),
        "zephyr/CMakeLists.txt": rendered(
            "zephyr/CMakeLists.txt",
            models=package.models,
            dependencies=package.dependencies,
            libraries=package.libraries,
            users={library.name: package.switches_of(library) for library in package.libraries},
            needed_folders={model.name: package.folders_needed_by(model) for model in package.models},
            budgeted=package.budgeted,
        ),
    }
