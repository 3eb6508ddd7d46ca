"""Read and check the archive that an external compiler wrote, and remove what makes it irreproducible."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mlfbuild.core import InputFileError, ProcessFailedError, counted

if TYPE_CHECKING:
    from mlfbuild.archive.validate import Report
    from mlfbuild.library import CompileRequest, Library


def exported_library(output: Path, request: CompileRequest, what: str, printed: str, *, tvm: str = "") -> Library:
    """Return the library in the archive ``output`` that the program ``what`` wrote for ``request``.

    ``tvm`` is the program's release if it is TVM. Export dates are removed, so that a second run of the exporter gives
    the same library and the same archive. The caller may remove the file afterwards.

    Raises ``ProcessFailedError`` with the text that the program ``printed`` if there is no such file,
    ``InputFileError`` if it is unsafe, damaged or breaks a rule of the format, and ``UsageError`` if it does not fit
    the request.
    """
    from mlfbuild.archive import read_files, tar
    from mlfbuild.archive.validate import validate
    from mlfbuild.compilers.archive import accepted
    from mlfbuild.core import open_binary

    if not output.is_file():
        written = "a folder, not an archive" if output.is_dir() else "no archive"
        raise ProcessFailedError(
            "archive-not-written",
            printed,
            place=what,
            reason=f"exited with status 0 but wrote {written} to {{output}}",
            hint="check its command line",
        )
    where = f"{what}: its archive"
    # The members are opened once for both readers: `read_files` builds the value, and `validate` also finds mistakes
    # that would show only when the firmware is compiled or linked.
    files = tar.members(open_binary(output, "archive"), where)
    library = read_files(files, where)
    report = validate(files, where)
    if report.failed:
        raise _first_error(report, where)
    library = accepted(library, request, f"the archive of {what.partition(': ')[2]}", tvm=tvm)
    # The date is the only field of the format that differs between two exports of the same model.
    return replace(library, modules=tuple(replace(module, export_datetime="") for module in library.modules))


def _first_error(report: Report, where: str) -> InputFileError:
    first = next(finding for finding in report.findings if finding.severity == "error")
    more = report.count("error") - 1
    others = f" (and {counted(more, 'more error')})" if more else ""
    return InputFileError(
        "exported-archive-invalid",
        place=f"{where}: {first.place}",
        reason=f"{first.message}{others}",
        hint=first.advice,
    )
