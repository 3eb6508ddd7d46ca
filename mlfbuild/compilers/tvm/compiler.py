"""The compiler that is TVM, as it was while it had Model Library Format: version 0.8 to 0.18, in a Python of its own.

    interpreter    which Python, and what TVM it has
    options        the options of the project file, each checked alone
    tvmc           the command line of ``tvmc compile``, which differs by version

TVM is never imported into this process: it is a program that leaves an archive, like those of ``compiler: command``.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from mlfbuild.core import UsageError, advised

if TYPE_CHECKING:
    from mlfbuild.compilers.types import CompileRequest, OptionValue
    from mlfbuild.library import Library

__all__ = ["TVM", "TvmCompiler"]

_UNNAMED = "default"


class TvmCompiler:
    """Runs ``python -m tvm.driver.tvmc compile`` (see ``compilers.Compiler``)."""

    name = "tvm"

    def check_options(self, options: Mapping[str, OptionValue]) -> list[tuple[str, str]]:
        """Return (key, reason) for each option that is unknown or has a value that it cannot have."""
        from mlfbuild.compilers.tvm.options import option_problems

        return option_problems(options)

    def version(self, request: CompileRequest) -> str:
        """Return the version of the TVM that ``request`` is compiled with; its Python is asked once.

        Raises ``ToolNotFoundError`` where there is no TVM of a version that writes archives.
        """
        from mlfbuild.compilers.tvm.interpreter import find_interpreter, tvm_version

        return tvm_version(find_interpreter(request.program, request.name))[1]

    def compile(self, request: CompileRequest) -> Library:
        """Run ``tvmc compile`` and return the library in the archive that it leaves.

        Raises ``ToolNotFoundError`` as ``version``, ``UsageError`` for options that this TVM does not have,
        ``ProcessFailedError`` with its output where it fails, and as ``exported_library``.
        """
        from mlfbuild.compilers.external.archive import exported_library
        from mlfbuild.compilers.external.find import source_word
        from mlfbuild.compilers.external.run import run_program
        from mlfbuild.compilers.seams import HOOK, hooked
        from mlfbuild.compilers.tvm.interpreter import find_interpreter, tvm_version
        from mlfbuild.compilers.tvm.tvmc import tvmc_arguments

        for key, reason in self.check_options(request.options):
            raise UsageError(advised(f"{request.name}: options.{key}: {reason}", "correct or remove it"))
        python = find_interpreter(request.program, request.name)
        version, text = tvm_version(python)
        what = f"{request.name}: tvmc of TVM {text}"
        with tempfile.TemporaryDirectory(prefix="mlfbuild-") as folder:
            output = Path(folder).absolute() / f"{request.name}.tar"
            root = request.program.folder if request.program else Path()
            source = source_word(request.source, root)
            words = [python, "-m", "tvm.driver.tvmc", "compile", *tvmc_arguments(request, version, source, output)]
            printed = run_program(words, what, folder=root, env={"PYTHONHASHSEED": "0"})
            library = _named(exported_library(output, request, what, printed, tvm=text), request.name)
            return hooked(library, request.name, "what TVM left") if request.options.get(HOOK) else library

    def outline(self, _request: CompileRequest) -> None:
        """Return ``None``: only the archive tells."""


def _named(library: Library, name: str) -> Library:
    """Return ``library`` with the model's name, where TVM 0.8 called its module "default"; objects keep their names."""
    from mlfbuild.archive import rename_modules
    from mlfbuild.c_analysis import OBJECT_SUFFIXES

    objects = any(file.path.suffix in OBJECT_SUFFIXES for module in library.modules for file in module.codegen)
    unnamed = [module.name for module in library.modules] == [_UNNAMED] and name != _UNNAMED
    return rename_modules(library, {_UNNAMED: name}) if unnamed and not objects else library


TVM = TvmCompiler()
