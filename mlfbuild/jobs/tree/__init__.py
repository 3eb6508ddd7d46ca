"""Write a library to a folder that a firmware build includes.

An unpacked tree keeps the archive's own paths and adds files for builds::

    codegen/ parameters/ executor-config/ src/ metadata.json     as in the archive
    mlf.cmake        fragment: a static library target mlf::<module> for each module
    mlf.mk           the same for GNU Make
    SConscript       the same for SCons, and for RT-Thread
    blobs/           graph executor only: graph and parameters as bytes of the firmware image
    RECORD.json      every file written, by hash

The trees of all models of a target are in one folder, with fragments that include them (``write_target_tree``). This
folder can also be a package of other build systems (``adapters``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    from mlfbuild.jobs.tree.adapters import ADAPTERS as ADAPTERS
    from mlfbuild.jobs.tree.cmake import FRAGMENT as FRAGMENT
    from mlfbuild.jobs.tree.library_folders import (
        DEPENDENCIES_FOLDER as DEPENDENCIES_FOLDER,
        dependency_files as dependency_files,
        write_dependencies as write_dependencies,
    )
    from mlfbuild.jobs.tree.parts import parts_of as parts_of
    from mlfbuild.jobs.tree.placement import (
        PLACEMENT_FOLDER as PLACEMENT_FOLDER,
        PlacedSection as PlacedSection,
        placement_files as placement_files,
    )
    from mlfbuild.jobs.tree.record import (
        RECORD as RECORD,
        Record as Record,
        is_file as is_file,
        reachable as reachable,
        read_record as read_record,
        recorded_files as recorded_files,
        tree_damage as tree_damage,
    )
    from mlfbuild.jobs.tree.target_tree import (
        check_target_tree as check_target_tree,
        target_files as target_files,
        write_target_tree as write_target_tree,
    )
    from mlfbuild.jobs.tree.tree import (
        UnpackResult as UnpackResult,
        remove_tree as remove_tree,
        write_tree as write_tree,
    )
    from mlfbuild.jobs.tree.unpacking import tree_files as tree_files, unpack as unpack
    from mlfbuild.jobs.tree.verification import (
        HOST as HOST,
        SYMBOL as SYMBOL,
        Subject as Subject,
        module_header as module_header,
        subject_of as subject_of,
    )
else:
    __getattr__ = lazy_attributes(__name__)
