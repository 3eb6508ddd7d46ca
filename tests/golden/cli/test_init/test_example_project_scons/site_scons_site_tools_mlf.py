"""The SCons tool `mlf`, from the installed package."""

from mlfbuild.scons import exists, generate

__all__ = ["exists", "generate"]
