"""Verbs about the tool itself."""

from __future__ import annotations

from mlfbuild.cli.options import Settings, verb
from mlfbuild.cli.output import show, show_json


@verb("format")
def schema(_settings: Settings) -> None:
    """Print the JSON Schema of the project file, for editors."""
    from mlfbuild.steps.about import schema as schema_of_project_files

    show_json(schema_of_project_files())


@verb("format")
def cmake_dir(settings: Settings) -> None:
    """Print the folder of mlfbuild's CMake package and toolchain files."""
    from mlfbuild.steps.about import cmake_dir as folder_of_cmake_files

    folder = folder_of_cmake_files()
    if settings.json:
        show_json({"cmake_dir": folder})
    else:
        show(str(folder))
