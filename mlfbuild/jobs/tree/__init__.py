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
    # fmt: off
    from mlfbuild.jobs.tree.adapters import ADAPTERS
    from mlfbuild.jobs.tree.build_text import FRAGMENT
    from mlfbuild.jobs.tree.library_folders import DEPENDENCIES_FOLDER, dependency_files, write_dependencies
    from mlfbuild.jobs.tree.parts import parts_of
    from mlfbuild.jobs.tree.placement import PLACEMENT_FOLDER, PlacedSection, placement_files
    from mlfbuild.jobs.tree.record import RECORD, Record, is_file, reachable, read_record, recorded_files, tree_damage
    from mlfbuild.jobs.tree.target_tree import check_target_tree, target_files, write_target_tree
    from mlfbuild.jobs.tree.tree import UnpackResult, remove_tree, write_tree
    from mlfbuild.jobs.tree.unpacking import tree_files, unpack
    from mlfbuild.jobs.tree.verification import HOST, SYMBOL, Subject, module_header, subject_of
else:
    __getattr__ = lazy_attributes(__name__)
