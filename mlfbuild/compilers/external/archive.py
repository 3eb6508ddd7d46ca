"""What a program of somebody else left: an archive that is read with care, judged, and made the same for the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mlfbuild.core import InputFileError, ProcessFailedError, counted

if TYPE_CHECKING:
    from mlfbuild.archive.validate import Report
    from mlfbuild.compilers.types import CompileRequest
    from mlfbuild.library import Library


def exported_library(output: Path, request: CompileRequest, what: str, printed: str, *, tvm: str = "") -> Library:
    """Return the library in the archive ``output`` that ``what``, a program, has left for ``request``.

    ``tvm`` is that program's release, where it is TVM.

    Its modules have no date of their own: an exporter that runs again leaves the same library, and so the same archive.
    The file may be removed at once.

    Raises ``ProcessFailedError`` with what the program ``printed`` where there is no such file, ``InputFileError``
    where it is unsafe, damaged or breaks a rule of the format, and ``UsageError`` where it is not what was asked for.
    """
    from mlfbuild.archive import read_files, tar
    from mlfbuild.archive.validate import validate
    from mlfbuild.compilers.archive import accepted
    from mlfbuild.core import open_binary

    if not output.is_file():
        left = "a folder, not an archive," if output.is_dir() else "no archive"
        raise ProcessFailedError(
            f"{what}: ended well, but left {left} where it was told to write one; check its command line", printed
        )
    where = f"{what}: its archive"
    files = tar.members(open_binary(output, "archive"), where)
    library = read_files(files, where)
    report = validate(files, where)
    if report.failed:
        raise InputFileError(f"{where}: is not valid: {_first_error(report)}")
    library = accepted(library, request, f"the archive of {what.partition(': ')[2]}", tvm=tvm)
    return replace(library, modules=tuple(replace(module, export_datetime="") for module in library.modules))


def _first_error(report: Report) -> str:
    first = next(finding for finding in report.findings if finding.severity == "error")
    more = report.count("error") - 1
    others = f" (and {counted(more, 'more error')})" if more else ""
    return f"{first.place}: {first.message}{others}; {first.advice}"
