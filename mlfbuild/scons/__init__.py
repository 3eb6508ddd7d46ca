"""The SCons tool ``mlf``: models become archives, trees and firmware inside a firmware repo's own SCons build.

A firmware repo needs this much of an SConstruct::

    env = Environment(tools=["default", "mlf"])
    models = env.MlfModels("mlfbuild.yml", target=env.MlfTarget("m55"))
    app = env.MlfFirmware("app", models=models)
    env.MlfVerify(models)

and a ``site_scons/site_tools/mlf.py`` of one import, which ``mlfbuild init`` writes::

    from mlfbuild.scons import exists, generate

Methods
-------
    ``MlfTarget(default)`` returns the target that ``scons target=NAME`` selects, and refuses unknown arguments.
    ``MlfModels(project, target)`` compiles and unpacks every model of a target and returns the nodes to depend on.
    ``MlfFirmware(name, models)`` runs the CMake cross build of a firmware; Ninja decides what is out of date.
    ``MlfRun(elf, models)`` runs an image on the target's device, or on its board in QEMU, and keeps its output.
    ``MlfFlash(elf, models)`` writes an image to the target's device and lets it run.
    ``MlfVerify(models)`` checks every model that has vectors on the target's board.
    ``MlfArchive(archive, model)`` and ``MlfUnpack(folder, archive)`` are the single steps.
    ``MlfParameters(blob, new, models, model)`` writes the values of a newer network for firmware in the field.
    ``MlfParams(binary, elf)`` writes the constants of an image for external flash.
    ``MlfReport(report, elf)`` writes the flash and RAM that each model uses, as text, JSON or HTML.
    ``MlfMerge(archive, archives)`` makes one archive of several, ``MlfCopy(archive, other)`` a copy.

``models.apply(env)`` adds models to an environment that links with SCons' own ``Program``, and ``models.place(env)``
puts their sections into memory regions of its linker script.

Construction variables
----------------------
    ``MLFBUILDDIR``
        The folder of all generated files.
    ``MLFCMAKEFLAGS``
        Further ``NAME=VALUE`` definitions for CMake.
    ``MLFFROZEN``
        Whether to stop if anything differs from mlfbuild.lock. ``scons MLFFROZEN=1`` also sets it.
    ``MLFNOWAIT``
        Whether to stop if another build is using the folder. ``scons MLFNOWAIT=1`` also sets it.
    ``MLFTIMEOUT``
        For ``MlfRun``: the seconds after which firmware that has not ended is stopped; for ``MlfVerify``: those that a
        case may take. ``scons MLFTIMEOUT=10`` also sets it.
    ``MLFVERBOSE``
        Whether to print the output of CMake and Ninja.
    ``MLFNAME``
        For ``MlfArchive`` and ``MlfUnpack``: the model's name in C; by default that of the archive.
    ``MLFCPU``
        For ``MlfArchive``: the processor core to compile for; ``host`` is this machine.
    ``MLFCOMPILER``
        For ``MlfArchive``: the compiler; by default the one for the file.
    ``MLFEXECUTOR``
        For ``MlfArchive``: ``aot`` or ``graph``; by default the compiler decides.
    ``MLFPYTHON``
        For ``MlfArchive`` with the compiler ``tvm``: the Python interpreter with TVM; by default ``python3``.
    ``MLFOPTIONS``
        For ``MlfArchive``: the compiler's options.
    ``MLFSIGNERS``
        For ``MlfArchive``, ``MlfMerge`` and ``MlfUnpack``: the file of allowed signers of archives that SCons does not
        make.
    ``MLFBLOBS``
        How graphs and parameters get into images: ``array`` or ``incbin``.
    ``MLFSECTION``
        For ``MlfParams``: the section to write.
    ``MLFPROFILE``
        For ``MlfReport``: whether to run models on the target's board and report their instructions.
    ``MLFARCHIVECOMSTR``
        The line that ``MlfArchive`` prints; the variables below set that of the other steps.
    ``MLFQUANTIZECOMSTR``
        For the quantised file of a model with ``quantize``, which ``MlfModels`` makes.
    ``MLFMERGECOMSTR``
        For ``MlfMerge``.
    ``MLFCOPYCOMSTR``
        For ``MlfCopy``.
    ``MLFUNPACKCOMSTR``
        For ``MlfUnpack``.
    ``MLFTREECOMSTR``
        For the target's tree, which ``MlfModels`` completes.
    ``MLFFIRMWARECOMSTR``
        For ``MlfFirmware``.
    ``MLFPARAMETERSCOMSTR``
        For ``MlfParameters``.
    ``MLFPARAMSCOMSTR``
        For ``MlfParams``.
    ``MLFREPORTCOMSTR``
        For ``MlfReport``.
    ``MLFFLASHCOMSTR``
        For ``MlfFlash``.
    ``MLFRUNCOMSTR``
        For ``MlfRun``.
    ``MLFVERIFYCOMSTR``
        For ``MlfVerify``.

Dependencies
------------
An archive depends on the content of its model file, on the model's own settings and on mlfbuild's sources, but not on
the project file, so a comment there rebuilds nothing. Equal content makes equal bytes: if a change makes no difference,
SCons stops after the archive. SCons trusts the signature that it stored for a target of its own when it built it, so it
would not notice an edit. For that reason trees are compared with their RECORD.json when the SConscript is read, and an
edited tree is unpacked again.

"""

from __future__ import annotations

import shutil
from typing import Any

from SCons.Script import ARGUMENTS

from mlfbuild.scons.archives import archive_builder, copy_builder, merge_builder, unpack_builder
from mlfbuild.scons.firmware import (
    mlf_firmware,
    mlf_flash,
    mlf_parameters,
    mlf_run,
    mlf_verify,
    report_builder,
)
from mlfbuild.scons.model_nodes import mlf_models, params_builder
from mlfbuild.scons.variables import VARIABLES, mlf_target

# SetDefault() below keeps what the SConstruct has set before the tool is loaded; VARIABLES may also come from the
# command line.
_DEFAULTS = {
    "MLFBUILDDIR": "build",
    "MLFCMAKEFLAGS": [],
    "MLFFROZEN": False,
    "MLFNOWAIT": False,
    "MLFTIMEOUT": 120,
    "MLFVERBOSE": False,
    "MLFCPU": "host",
    "MLFCOMPILER": "",
    "MLFEXECUTOR": "",
    "MLFPYTHON": "",
    "MLFOPTIONS": {},
    "MLFSIGNERS": "",
    "MLFBLOBS": "array",
    "MLFARCHIVECOMSTR": "Compiling model $SOURCE -> $TARGET",
    "MLFQUANTIZECOMSTR": "Quantising $SOURCE -> $TARGET",
    "MLFMERGECOMSTR": "Merging $SOURCES -> $TARGET",
    "MLFCOPYCOMSTR": "Copying $SOURCE -> $TARGET",
    "MLFUNPACKCOMSTR": "Unpacking $SOURCE -> ${TARGET.dir}",
    "MLFTREECOMSTR": "Writing $TARGET",
    "MLFFIRMWARECOMSTR": "Building firmware $TARGET",
    "MLFPARAMETERSCOMSTR": "Writing $TARGET from $SOURCE",
    "MLFPARAMSCOMSTR": "Writing $TARGET from $SOURCE",
    "MLFSECTION": ".mlf_params",
    "MLFPROFILE": False,
    "MLFREPORTCOMSTR": "Writing $TARGET from $SOURCE",
    "MLFFLASHCOMSTR": "Flashing $SOURCE",
    "MLFRUNCOMSTR": "Running $SOURCE",
    "MLFVERIFYCOMSTR": "Verifying ${SOURCE.dir}",
}


def generate(env: Any, **_: Any) -> None:
    """Add the builders, methods and default variables to ``env``, except variables that are already set."""
    env.SetDefault(
        **{name: ARGUMENTS.get(name, value) if name in VARIABLES else value for name, value in _DEFAULTS.items()}
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
    env.AddMethod(mlf_target, "MlfTarget")
    env.AddMethod(mlf_models, "MlfModels")
    env.AddMethod(mlf_firmware, "MlfFirmware")
    env.AddMethod(mlf_flash, "MlfFlash")
    env.AddMethod(mlf_parameters, "MlfParameters")
    env.AddMethod(mlf_run, "MlfRun")
    env.AddMethod(mlf_verify, "MlfVerify")


def exists(_env: Any) -> bool:
    """Return whether CMake and Ninja are installed, which the tool requires."""
    return all(shutil.which(tool) for tool in ("cmake", "ninja"))
