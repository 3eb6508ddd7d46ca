"""From a library to a folder that a firmware build includes.

An unpacked tree keeps the archive's own paths and adds what a build needs::

    codegen/ parameters/ executor-config/ src/ metadata.json     as in the archive
    mlf.cmake        fragment: a static library target mlf::<module> for each module
    mlf.mk           the same for GNU Make
    SConscript       the same for SCons, and for RT-Thread
    blobs/           graph executor only: graph and parameters as bytes of the firmware image
    RECORD.json      every file written, by hash

Trees of all models of a target lie side by side below fragments that include them (``write_target_tree``). The folder
that holds them can be a package of other build systems, too (``adapters``).
"""

from mlfbuild.build.tree.adapters import ADAPTERS
from mlfbuild.build.tree.record import Record, read_record, recorded_files, tree_damage
from mlfbuild.build.tree.target_tree import check_target_tree, target_files, write_target_tree
from mlfbuild.build.tree.tree import UnpackResult, remove_tree
from mlfbuild.build.tree.unpacking import tree_files, unpack

__all__ = [
    "ADAPTERS",
    "Record",
    "UnpackResult",
    "check_target_tree",
    "read_record",
    "recorded_files",
    "remove_tree",
    "target_files",
    "tree_damage",
    "tree_files",
    "unpack",
    "write_target_tree",
]
