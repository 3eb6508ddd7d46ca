"""The SCons tool `mlf`, from the installed package."""

import sys

from SCons.Errors import UserError

try:
    from mlfbuild.scons import exists, generate
except ModuleNotFoundError as error:
    if error.name != "mlfbuild":
        raise
    hint = "activate the environment that has mlfbuild, and run scons there"
    raise UserError(f"mlfbuild is not installed in {sys.executable}; {hint}") from None

__all__ = ["exists", "generate"]
