"""Compile a model with TVM: run ``tvmc``, and read the archive that it writes."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from mlfbuild.library import refuse_options

if TYPE_CHECKING:
    from mlfbuild.core import Mistake
    from mlfbuild.library import CompileRequest, Library, OptionValue

__all__ = ["TVM", "TvmCompiler"]

# TVM 0.8 has no --module-name: `tvmc/compiler.py` calls `relay.build` without `mod_name`, whose default this is.
_UNNAMED = "default"


class TvmCompiler:
    """Runs ``python -m tvm.driver.tvmc compile`` (see ``compilers.Compiler``)."""

    name = "tvm"

    def check_options(self, options: Mapping[str, OptionValue]) -> list[tuple[str, Mistake]]:
        """Return (key, mistake) for each option that is unknown or has a value that is not accepted."""
        from mlfbuild.compilers.tvm.options import option_problems

        return option_problems(options)

    def version(self, request: CompileRequest) -> str:
        """Return the version of TVM that compiles ``request``; each Python is started only once to read it.

        Raises ``ToolNotFoundError`` if there is no TVM of a version that writes archives.
        """
        from mlfbuild.compilers.tvm.tvmc import find_interpreter, tvm_version

        return tvm_version(find_interpreter(request.program, request.name))[1]

    def compile(self, request: CompileRequest) -> Library:
        """Run ``tvmc compile`` and return the library in the archive that it writes.

        Raises ``ToolNotFoundError`` as ``version``, ``UsageError`` for options that this TVM does not have,
        ``ProcessFailedError`` with its output if it fails, and as ``exported_library``.
        """
        from mlfbuild.compilers.external.archive import exported_library
        from mlfbuild.compilers.external.run import run_program, source_word
        from mlfbuild.compilers.hook_support import HOOK, hooked
        from mlfbuild.compilers.tvm.tvmc import find_interpreter, tvm_version, tvmc_arguments

        refuse_options(self, request)
        python = find_interpreter(request.program, request.name)
        version, text = tvm_version(python)
        what = f"{request.name}: tvmc of TVM {text}"
        with tempfile.TemporaryDirectory(prefix="mlfbuild-") as folder:
            output = Path(folder).absolute() / f"{request.name}.tar"
            root = request.program.folder if request.program else Path()
            source = source_word(request.source, root)
            words = [python, "-m", "tvm.driver.tvmc", "compile", *tvmc_arguments(request, version, source, output)]
            # A fixed seed, so that what iterates over a set of names in TVM does so in the same order in each run.
            printed = run_program(words, what, folder=root, env={"PYTHONHASHSEED": "0"})
            library = _named(exported_library(output, request, what, printed, tvm=text), request.name)
            return hooked(library, request.name, "the archive of TVM") if request.options.get(HOOK) else library

    def outline(self, _request: CompileRequest) -> None:
        """Return ``None``: the files are not known before TVM has run."""


def _named(library: Library, name: str) -> Library:
    """Rename the module that TVM 0.8 always calls "default"; not if it has objects, whose symbols cannot change."""
    from mlfbuild.archive import rename_modules
    from mlfbuild.c_analysis import OBJECT_SUFFIXES

    objects = any(file.path.suffix in OBJECT_SUFFIXES for module in library.modules for file in module.codegen)
    unnamed = [module.name for module in library.modules] == [_UNNAMED] and name != _UNNAMED
    return rename_modules(library, {_UNNAMED: name}) if unnamed and not objects else library


TVM = TvmCompiler()
