"""Compile a model for one CPU to a library.

A compiler maps a request, which names a model file, a CPU and options, to a ``Library``, the content of an archive:

    request = CompileRequest("kws", Path("kws.tflite"), CPUS["cortex-m4"])
    library = compiler_called("native").compile(request)

``native`` generates C for ``.tflite`` and ``.onnx`` files. ``archive`` reads an archive that another tool exported.
``command`` and ``tvm`` run a program that writes one. Compilers do not write archives, cache results or access the
network.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mlfbuild.compilers.archive import ARCHIVE
from mlfbuild.compilers.command import COMMAND
from mlfbuild.compilers.tvm.compiler import TVM
from mlfbuild.core import lazy_attributes, unknown
from mlfbuild.library import Compiler as Compiler, ExternalCompiler, refused
from mlfbuild.native import NATIVE

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.compilers.abi_check import check_fit, exported_cpu
    from mlfbuild.compilers.archive import check_placement
    from mlfbuild.compilers.hook_support import HOOK, why_no_hook
else:
    __getattr__ = lazy_attributes(__name__)


EXTERNAL_COMPILERS: Mapping[str, ExternalCompiler] = {"command": COMMAND, "tvm": TVM}
"""Compilers that run another program."""
COMPILERS: Mapping[str, Compiler] = {"archive": ARCHIVE, "native": NATIVE, **EXTERNAL_COMPILERS}
"""Every compiler by its name in the project file; a compiler imports its modules when it compiles."""


def compiler_called(name: str) -> Compiler:
    """Return the compiler ``name``; raises ``UsageError`` if there is none."""
    if name not in COMPILERS:
        raise refused("", unknown("compiler", name, sorted(COMPILERS)))
    return COMPILERS[name]
