"""The compiler ``command``: a command line of the project file that writes a Model Library Format archive."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from mlfbuild.core import Mistake, UsageError, shown
from mlfbuild.library import refuse_options

if TYPE_CHECKING:
    from mlfbuild.library import CompileRequest, Library, OptionValue


class CommandCompiler:
    """Runs ``request.program.command`` (see ``compilers.Compiler``)."""

    name = "command"

    def check_options(self, options: Mapping[str, OptionValue]) -> list[tuple[str, Mistake]]:
        """Return a mistake for every option, because options belong in the command line."""
        mistake = Mistake("option-of-command", reason="compiler command has no options", hint="use the command line")
        return [(key, mistake) for key in options]

    def version(self, _request: CompileRequest) -> str:
        """Return nothing, because the version of the command is not known."""
        return ""

    def compile(self, request: CompileRequest) -> Library:
        """Run the command and return the library in the archive that it writes.

        Raises ``ToolNotFoundError`` if the program is missing, ``ProcessFailedError`` with its output if it fails or
        writes no archive, and as ``exported_library``.
        """
        from mlfbuild.compilers.external.archive import exported_library
        from mlfbuild.compilers.external.run import find_program, run_program, source_word
        from mlfbuild.project import filled

        program = request.program
        if program is None or not program.command:
            raise UsageError(
                "command-without-project-file",
                place=request.name,
                reason="compiler command needs a project file",
                hint="write the command line in the project file",
            )
        refuse_options(self, request)
        what = f"{request.name}: {shown(' '.join(program.command), 80)}"
        # The command never writes into the build folder: if it fails halfway, no damaged archive is left there that a
        # later build could take for a good one.
        with tempfile.TemporaryDirectory(prefix="mlfbuild-") as folder:
            output = Path(folder).absolute() / f"{request.name}.tar"
            values = {
                "source": source_word(request.source, program.folder),
                "output": str(output),
                "cpu": request.cpu.name,
                "name": request.name,
            }
            words = list(filled(program.command, values))
            # Resolved before it runs, because exec would search a relative path from the wrong folder, and its error
            # message does not name the project file's key.
            words[0] = find_program(words[0], program.folder, what)
            printed = run_program(words, what, folder=program.folder)
            return exported_library(output, request, what, printed)

    def outline(self, _request: CompileRequest) -> None:
        """Return ``None``: the files are not known before the command has run."""


COMMAND = CommandCompiler()
