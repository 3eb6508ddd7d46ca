"""``mlfbuild validate``."""

from __future__ import annotations

from pathlib import Path

import click

from mlfbuild.cli.options import ARCHIVE, SharedOptions, format_option, verb
from mlfbuild.cli.output.printing import FAILED, PASSED, show, show_json
from mlfbuild.core import CheckFailedError, counted


@verb()
@format_option("text", "json", "github", "sarif")
@ARCHIVE
@click.option("--strict", is_flag=True, help="Also fail on warnings.")
def validate(options: SharedOptions, archive: Path, strict: bool) -> None:
    """Check ARCHIVE against the rules of the format.

    ARCHIVE may be a .tflite or .onnx file: what it compiles to is checked.

    Each finding has a code, which docs/archive-commands.md explains. The exit status is 1 if there is an error, and 5
    if ARCHIVE cannot be read. With -q, print nothing about a valid archive.
    """
    from mlfbuild.usecases import validate_archive

    report = validate_archive(archive)
    errors, warnings = report.count("error"), report.count("warning")
    failed = report.failed or (strict and warnings > 0)
    if options.format == "sarif":
        from mlfbuild.cli.output.ci_formats import sarif_log

        show_json(sarif_log(report, archive))
    elif options.json:
        show_json({**report.to_json(), "strict": strict, "passed": not failed})
    elif failed or not options.quiet:
        text = report.text()
        # Only the last line, which has the verdict, is coloured.
        show(text, {text.rpartition("\n")[2]: FAILED if failed else PASSED})
    if failed:
        found = counted(errors, "error") if errors else f"{counted(warnings, 'warning')} with --strict"
        raise CheckFailedError(
            "archive-invalid",
            place=archive,
            reason=f"the archive has {found}",
            hint="see the findings above",
            problems=[
                finding.diagnostic(archive)
                for finding in report.findings
                if finding.severity == "error" or (strict and finding.severity == "warning")
            ],
        )
