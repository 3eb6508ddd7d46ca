"""Write a library to a folder that a firmware build includes, and keep it: files that users may commit.

An unpacked tree keeps the archive's own paths and adds files for builds::

    codegen/ parameters/ executor-config/ src/ metadata.json     as in the archive
    mlf.cmake        fragment: a static library target mlf::<module> for each module
    mlf.mk           the same for GNU Make
    SConscript       the same for SCons, and for RT-Thread
    blobs/           graph executor only: graph and parameters as bytes of the firmware image
    RECORD.json      every file written, by hash

The trees of all models of a target are in one folder, with fragments that include them (``write_target_tree``). This
folder can also be a package of other build systems (``adapters``). All paths in it are relative, so that it can be
moved and committed; a build with a committed tree needs neither mlfbuild nor Python.

**Who may change what.** ``RECORD.json`` lists the files that mlfbuild wrote, with SHA-256 and size. Only mlfbuild
changes it: ``unpack`` that of a tree, ``write_target_tree`` that of the folder, ``write_dependencies`` that of the
required libraries. Only ``remove_tree``, for a model or libraries that are no longer needed, and ``scons -c`` delete
it, with the files that it lists. The rules of ``write_tree``, which writes all three:

1. A file in the record is mlfbuild's: it is restored if it is missing or edited (and reported as edited), and removed
   when it is no longer needed. Edits belong in the model or the project file.
2. A file that is not in the record is the user's: it is never changed, removed or followed. If one has the path of a
   file to write with another content, the build stops with ``ConflictError`` before anything is written.
3. A symbolic link is never mlfbuild's, also in place of a recorded folder: what is behind it could be anywhere.
4. ``.gitattributes`` is written unless the user has one: the record compares bytes, so Git must not change line ends.

**Interruption.** Before the first change the record is written with the files of the old *and* the new state and
``"complete": false``; after the last one with the new state. A process that is killed in between leaves a record that
names everything it may have written, so the next build restores the tree, and no file is taken for the user's.

**Example.** A model loses its second kernel file: the record lists both and is incomplete, ``net_lib1.c`` is removed,
``mlf.cmake`` replaced, and the record written again. ``net_lib0.c`` is the same and keeps its time, so Ninja compiles
nothing but what changed. A file ``notes.txt`` of the user stays, and so does its folder if the model goes.

**What it does not do.** It does not protect from edits: a tree is checked when a build runs (``tree_damage``), not
between builds. Empty folders are not kept. The record is not a signature, because anyone who can edit a file can
edit the record; the archive's id in it says which archive the tree was made from.
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
    from mlfbuild.jobs.tree.target_tree import (
        TreeSettings, check_target_tree, target_files, tree_files, unpack, write_target_tree,
    )
    from mlfbuild.jobs.tree.tree import UnpackResult, remove_tree, write_tree
    from mlfbuild.jobs.tree.verification import HOST, SYMBOL, Subject, module_header, subject_of
else:
    __getattr__ = lazy_attributes(__name__)
