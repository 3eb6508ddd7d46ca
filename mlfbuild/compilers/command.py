"""The compiler that is a command line of the project's own: whatever leaves a Model Library Format archive."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from mlfbuild.core import UsageError, advised, shown

if TYPE_CHECKING:
    from mlfbuild.compilers.types import CompileRequest, OptionValue
    from mlfbuild.library import Library


class CommandCompiler:
    """Runs ``request.program.command`` (see ``compilers.Compiler``)."""

    name = "command"

    def check_options(self, options: Mapping[str, OptionValue]) -> list[tuple[str, str]]:
        """Return a reason for every option: the command line says all there is to say."""
        return [(key, "a command takes no options; write it in the command line itself") for key in options]

    def version(self, _request: CompileRequest) -> str:
        """Return nothing: what decides the result stands in the project file."""
        return ""

    def compile(self, request: CompileRequest) -> Library:
        """Run the command and return the library in the archive that it leaves.

        Raises ``ToolNotFoundError`` where the program is missing, ``ProcessFailedError`` with its output where it fails
        or leaves no archive, and as ``exported_library``.
        """
        from mlfbuild.compilers.external.archive import exported_library
        from mlfbuild.compilers.external.find import find_program, source_word
        from mlfbuild.compilers.external.run import run_program
        from mlfbuild.project import filled

        program = request.program
        if program is None or not program.command:
            raise UsageError(f"{request.name}: compiler command: needs a project file; write there what to run")
        for key, reason in self.check_options(request.options):
            raise UsageError(advised(f"{request.name}: option {key}: {reason}", "remove it"))
        what = f"{request.name}: {shown(' '.join(program.command), 80)}"
        with tempfile.TemporaryDirectory(prefix="mlfbuild-") as folder:
            output = Path(folder).absolute() / f"{request.name}.tar"
            values = {
                "source": source_word(request.source, program.folder),
                "output": str(output),
                "cpu": request.cpu.name,
                "name": request.name,
            }
            words = list(filled(program.command, values))
            words[0] = find_program(words[0], program.folder, what)
            printed = run_program(words, what, folder=program.folder)
            return exported_library(output, request, what, printed)

    def outline(self, _request: CompileRequest) -> None:
        """Return ``None``: only the archive tells."""


COMMAND = CommandCompiler()
