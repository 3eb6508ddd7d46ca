"""Libraries with the code of models for other devices, which SCons makes with the compilers of these devices."""

from __future__ import annotations

import functools
import os
import subprocess
from typing import Any

from SCons.Script import GetOption
from SCons.Tool import SourceFileScanner

from mlfbuild.core import UsageError
from mlfbuild.jobs import DevicePart
from mlfbuild.scons.trees import TreeNodes


def device_library(env: Any, folder: Any, tree: TreeNodes, part: DevicePart) -> Any:
    """Return the node of the library of ``part``, in ``folder``.

    Only ``MLF_DEVICE_<NAME>_COMPILER`` and ``MLF_DEVICE_<NAME>_FLAGS`` of ``env`` have an effect on it. Raises
    ``UsageError`` if no compiler is known.
    """
    compiler = env.subst(f"${part.variable}_COMPILER") or os.environ.get(part.tools.variable) or part.tools.compiler
    if not compiler:
        raise UsageError(
            "device-compiler-unknown",
            place=f"device {part.name}",
            reason=f"codegen/{part.name} of module {part.module} is code for it, and no compiler is known",
            hint=f"set {part.variable}_COMPILER, and its options in {part.variable}_FLAGS",
        )
    flags = env.get(f"{part.variable}_FLAGS")
    folders = [tree.folder.Dir(path) for path in part.include_dirs]
    command = [compiler, *(part.flags if flags is None else env.Split(flags)), *(f"-I{each}" for each in folders)]
    action = env.Action([[*command, "-o", "$TARGET", "-c", "$SOURCE"]], "$CCCOMSTR")
    objects = [
        env.Command(
            folder.Dir(part.target).File(f"{path.replace('/', '-')}.o"),
            tree.folder.File(path),
            action,
            source_scanner=SourceFileScanner,
            CPPPATH=folders,
        )
        for path in part.sources
    ]
    compiled = [tree.folder.File(path) for path in part.objects]
    archive = env.Action([[_archiver(compiler), "rcs", "$TARGET", "$SOURCES"]], "$ARCOMSTR")
    return env.Command(folder.File(f"libmlf_{part.target}.a"), [*objects, *compiled], archive)


@functools.cache
def _archiver(compiler: str) -> str:
    """Return the archiver that belongs to ``compiler``; if it does not run, the first compilation reports that."""
    if GetOption("clean") or GetOption("help"):
        return "ar"
    try:
        done = subprocess.run([compiler, "-print-prog-name=ar"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "ar"
    return done.stdout.strip() or "ar"
