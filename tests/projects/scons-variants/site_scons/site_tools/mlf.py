"""The SCons tool ``mlf``; all of it is in mlfbuild.scons."""

from mlfbuild.scons import exists, generate  # noqa: F401  # SCons calls both
