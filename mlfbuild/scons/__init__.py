"""The SCons tool ``mlf``: models become archives, trees and firmware inside a firmware repo's own SCons build.

A firmware repo needs this much of an SConstruct::

    env = Environment(tools=["default", "mlf"])
    models = env.MlfModels("mlfbuild.yml", target="m55")
    app = env.MlfFirmware("app", models=models)
    env.MlfVerify(models)

and a ``site_scons/site_tools/mlf.py`` of one import, which ``mlfbuild init`` writes::

    from mlfbuild.scons import exists, generate

Methods
-------
    ``MlfModels(project, target)`` compiles and unpacks every model of a target and returns the nodes to depend on.
    ``MlfFirmware(name, models)`` drives the CMake cross build of a firmware; Ninja decides what is out of date.
    ``MlfRun(elf, models)`` runs an image on the target's board in QEMU and keeps what it printed.
    ``MlfVerify(models)`` checks every model that has vectors on the target's board.
    ``MlfArchive(archive, model)`` and ``MlfUnpack(folder, archive)`` are the single steps, and
    ``MlfParams(binary, elf)`` writes the constants of an image for external flash,
    ``MlfReport(report, elf)`` whose each byte of it is, as text or JSON, and
    ``MlfMerge(archive, archives)`` makes one archive of several, ``MlfCopy(archive, other)`` one equal to another.

``models.apply(env)`` adds models to an environment that links with SCons' own ``Program``, and ``models.place(env)``
puts their sections into memory regions of its linker script.

Construction variables
----------------------
    ``MLFBUILDDIR``
        The folder of everything that is generated.
    ``MLFCMAKEFLAGS``
        Further ``NAME=VALUE`` definitions for CMake.
    ``MLFFROZEN``
        Build what mlfbuild.lock has: any drift from it stops SCons. ``scons MLFFROZEN=1`` sets it, too.
    ``MLFVERBOSE``
        Show what CMake and Ninja print.
    ``MLFNAME``
        Of ``MlfArchive`` and ``MlfUnpack``: the model's name in C. Without it that of the archive.
    ``MLFCPU``
        Of ``MlfArchive``: the processor core to compile for, ``host`` for this machine.
    ``MLFCOMPILER``
        Of ``MlfArchive``: the compiler. Without it the one for the file.
    ``MLFEXECUTOR``
        Of ``MlfArchive``: ``aot`` or ``graph``. Without it the compiler's own choice.
    ``MLFPYTHON``
        Of ``MlfArchive`` with the compiler ``tvm``: the Python that has TVM. Without it ``python3``.
    ``MLFOPTIONS``
        Of ``MlfArchive``: the compiler's options.
    ``MLFBLOBS``
        How graphs and parameters get into images: ``array`` or ``incbin``.
    ``MLFSECTION``
        Of ``MlfParams``: the section that it writes.
    ``MLFPROFILE``
        Of ``MlfReport``: whether models run on the target's board, so that the report has their instructions.
    ``MLFARCHIVECOMSTR``
        What ``MlfArchive`` prints; so the others below.
    ``MLFMERGECOMSTR``
        Of ``MlfMerge``.
    ``MLFCOPYCOMSTR``
        Of ``MlfCopy``.
    ``MLFUNPACKCOMSTR``
        Of ``MlfUnpack``.
    ``MLFTREECOMSTR``
        Of the target's tree, which ``MlfModels`` finishes.
    ``MLFFIRMWARECOMSTR``
        Of ``MlfFirmware``.
    ``MLFPARAMSCOMSTR``
        Of ``MlfParams``.
    ``MLFREPORTCOMSTR``
        Of ``MlfReport``.
    ``MLFRUNCOMSTR``
        Of ``MlfRun``.
    ``MLFVERIFYCOMSTR``
        Of ``MlfVerify``.

What a node depends on decides whether the product can be trusted, so it is spelled out: an archive depends on the
content of its model file, on the model's own settings (not on the project file, whose comments change nothing), and on
mlfbuild's own sources. Archives are the same bytes for the same content, so a change that makes no difference stops
there. SCons does not look at the content of what it built; trees are compared with their RECORD.json when the
SConscript is read, and a tree that somebody edited is unpacked again.

"""

from __future__ import annotations

import shutil
from typing import Any

from SCons.Script import ARGUMENTS

from mlfbuild.scons.archives import archive_builder, copy_builder, merge_builder, unpack_builder
from mlfbuild.scons.firmware import mlf_firmware, mlf_run
from mlfbuild.scons.models import mlf_models
from mlfbuild.scons.placement import params_builder
from mlfbuild.scons.report import report_builder
from mlfbuild.scons.verify import mlf_verify

_DEFAULTS = {
    "MLFBUILDDIR": "build",
    "MLFCMAKEFLAGS": [],
    "MLFFROZEN": False,
    "MLFVERBOSE": False,
    "MLFCPU": "host",
    "MLFCOMPILER": "",
    "MLFEXECUTOR": "",
    "MLFPYTHON": "",
    "MLFOPTIONS": {},
    "MLFBLOBS": "array",
    "MLFARCHIVECOMSTR": "Compiling model $SOURCE -> $TARGET",
    "MLFMERGECOMSTR": "Merging $SOURCES -> $TARGET",
    "MLFCOPYCOMSTR": "Copying $SOURCE -> $TARGET",
    "MLFUNPACKCOMSTR": "Unpacking $SOURCE -> ${TARGET.dir}",
    "MLFTREECOMSTR": "Writing $TARGET",
    "MLFFIRMWARECOMSTR": "Building firmware $TARGET",
    "MLFPARAMSCOMSTR": "Writing $TARGET from $SOURCE",
    "MLFSECTION": ".mlf_params",
    "MLFPROFILE": False,
    "MLFREPORTCOMSTR": "Writing $TARGET from $SOURCE",
    "MLFRUNCOMSTR": "Running $SOURCE",
    "MLFVERIFYCOMSTR": "Verifying ${SOURCE.dir}",
}

_ARGUMENTS = {"MLFFROZEN"}
"""Those that the command line gives, too: whoever builds chooses, not who wrote the SConstruct."""


def generate(env: Any, **_: Any) -> None:
    """Add the builders, methods and default variables to ``env``; what the user has set already stays."""
    env.SetDefault(
        **{name: ARGUMENTS.get(name, value) if name in _ARGUMENTS else value for name, value in _DEFAULTS.items()}
    )
    env.Append(
        BUILDERS={
            "MlfArchive": archive_builder(),
            "MlfCopy": copy_builder(),
            "MlfMerge": merge_builder(),
            "MlfParams": params_builder(),
            "MlfReport": report_builder(),
            "MlfUnpack": unpack_builder(),
        }
    )
    env.AddMethod(mlf_models, "MlfModels")
    env.AddMethod(mlf_firmware, "MlfFirmware")
    env.AddMethod(mlf_run, "MlfRun")
    env.AddMethod(mlf_verify, "MlfVerify")


def exists(_env: Any) -> bool:
    """Whether what every use of the tool needs is installed: CMake and Ninja."""
    return all(shutil.which(tool) for tool in ("cmake", "ninja"))
