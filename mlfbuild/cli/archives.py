"""The verbs that read or write one archive: inspect, validate, convert, merge, split, compare and unpack."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mlfbuild.cli.options import (
    ARCHIVE,
    FILE,
    INPUTS,
    OUTPUT,
    PLACE,
    SharedOptions,
    format_option,
    timeout_option,
    verb,
)
from mlfbuild.cli.output.printing import FAILED, PASSED, note_unless_quiet, show, show_json, show_result
from mlfbuild.cli.output.progress import working
from mlfbuild.core import CheckFailedError, UsageError, counted, listed, printable
from mlfbuild.project import DEFAULT_LEVEL, LEVELS

if TYPE_CHECKING:
    from mlfbuild.archive.repair import RepairedLibrary
    from mlfbuild.usecases import Conversion

_PARAMS_FORMS = ("params", "json", "bson")
_SECONDS = 60.0


@verb("model", "format")
@ARCHIVE
def inspect(options: SharedOptions, archive: Path) -> None:
    """Show the modules, interface, memory and files of ARCHIVE.

    ARCHIVE may be a .tflite or .onnx file: it is compiled for this machine.

    Long lists are shortened to their largest entries, except with -v or --format json. If ARCHIVE is a firmware image,
    as an ELF file or as the bytes of its flash, list the models in it.
    """
    from mlfbuild.core import text_table
    from mlfbuild.usecases import archive_text, inspect_archive, models_in_image

    # An image is recognised first, because reading it as an archive would only end in an error.
    found = models_in_image(archive)
    if options.json:
        show_json(inspect_archive(archive, options.model) if found is None else {"image": archive, "models": found})
    elif found is None:
        show(archive_text(archive, options.model, verbose=options.verbose))
    else:
        rows = [
            (each.model, f"sha256 {each.sha256}", f"compiled by mlfbuild {each.version}" if each.version else "")
            for each in found
        ]
        show(f"{counted(len(found), 'model')} in {archive}\n{text_table(rows, indent=2)}")


@verb()
@format_option("text", "json", "github", "sarif")
@ARCHIVE
@click.option("--strict", is_flag=True, help="Also fail on warnings.")
def validate(options: SharedOptions, archive: Path, strict: bool) -> None:
    """Check ARCHIVE against the rules of the format.

    ARCHIVE may be a .tflite or .onnx file: what it compiles to is checked.

    Each finding has a code, whose meaning never changes. The exit status is 1 if there is an error, and 5
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
        serious = {"error", "warning"} if strict else {"error"}
        raise CheckFailedError(
            "archive-invalid",
            place=archive,
            reason=f"the archive has {found}",
            hint="see the findings above",
            problems=[each.diagnostic(archive) for each in report.findings if each.severity in serious],
        )


@verb("format")
@ARCHIVE
@click.option("--to", "version", type=int, default=7, metavar="VERSION", help="Format version, 1 to 7 (default).")
@click.option(
    "--params", type=click.Choice(_PARAMS_FORMS), default="params", help="Form of the parameters; default params."
)
@click.option("--repair", is_flag=True, help="Correct known bugs of exporters, and list them.")
@click.option("--module-name", "names", multiple=True, metavar="[OLD=]NEW", help="Rename a module in all its code.")
@OUTPUT
def convert(
    options: SharedOptions,
    archive: Path,
    version: int,
    params: str,
    repair: bool,
    names: tuple[str, ...],
    output: Path,
) -> None:
    """Write ARCHIVE in another version of the format.

    Nothing is lost: if the version cannot hold the content, such as several modules before version 7, the exit status
    is 2. Rename modules to link archives whose modules have the same name, such as TVM's "default".

    With --repair, mlfbuild corrects the errors of known exporter bugs and lists each correction.
    """
    from mlfbuild.usecases import convert_archive

    done = convert_archive(archive, version, output, names, params, repair=repair)
    found = {} if done.repair is None else {"repairs": done.repair.repairs, "in_doubt": done.repair.in_doubt}
    lines = [] if done.repair is None else _repair_lines(done.repair)
    show_result(
        options,
        {"archive": output, "version": version, "size": done.size, "moved": done.moved, **found},
        "\n".join([*lines, f"{output}: version {version}, {done.size:,} bytes", *_moved_lines(done)]),
    )


def _moved_lines(done: Conversion) -> Iterator[str]:
    """Yield a line for the fields that could not stay in their places."""
    if done.moved:
        fields = counted(len(done.moved), "unknown field")
        yield f"{fields} of the metadata kept in the key mlfbuild: {printable(listed(done.moved))}"


def _repair_lines(result: RepairedLibrary) -> Iterator[str]:
    """Yield a line for each repair and each date in doubt, and one that counts them."""
    for each in result.repairs:
        yield f"repaired {each.code} {each.place}: {each.before} -> {each.after}"
    for date in result.in_doubt:
        yield f"unchanged MLF206 {date.place}: {date.reason}"
    yield counted(len(result.repairs), "repair") if result.repairs else "nothing to repair"


@verb("format")
@click.argument("archives", type=FILE, nargs=-1, required=True)
@OUTPUT
def merge(options: SharedOptions, archives: tuple[Path, ...], output: Path) -> None:
    """Write several ARCHIVES as one.

    One firmware can link the result. If modules, symbols or dependencies conflict, the exit status is 1.
    """
    from mlfbuild.usecases import merge_archives

    modules = merge_archives(archives, output)
    size = output.stat().st_size
    text = f"{output}: {counted(len(modules), 'module')} ({listed(modules)}), {size:,} bytes"
    show_result(options, {"archive": output, "modules": modules, "size": size}, text)


@verb("model", "format")
@ARCHIVE
@click.option(
    "-o", "output", type=FILE, required=True, metavar="OUT", help="Output folder, or output archive of one module."
)
def split(options: SharedOptions, archive: Path, output: Path) -> None:
    """Write each module of ARCHIVE as an archive.

    OUT is a folder, which gets an archive <module>.tar for each module. With one --model NAME, OUT is the archive of
    this module. Files that several modules need are copied. If another file is in the way, nothing is written and the
    exit status is 6.
    """
    from mlfbuild.usecases import split_archive

    written = split_archive(archive, output, options.model)
    text = "\n".join(f"{each.archive}: module {each.module}, {each.size:,} bytes" for each in written)
    show_result(options, {"archives": written}, text)


@verb("model", "format")
@click.argument("first", type=FILE)
@click.argument("second", type=FILE)
@INPUTS
@timeout_option()
def compare(options: SharedOptions, first: Path, second: Path, inputs: Path | None, timeout: float | None) -> None:
    """Compare two archives by meaning.

    Each may be a .tflite or .onnx file: it is compiled for the CPU of the other archive, or for this machine. Of two
    such files, the tensors that changed most are listed first.

    Modules, interface, memory, code and weights are compared; -v lists the files of code. Format versions, dates and
    the text of programs are listed, but do not count as differences. The exit status is 0 if both archives mean the
    same, and 1 if they differ. With -q, nothing is printed except that they differ.

    With --inputs, compare what they compute: a network of each runs on this machine, and the first operator whose
    result differs is named. Give --model twice if the two have different names. If FIRST is a float network, and SECOND
    the file that was quantised from it, their tensors are ranked by lost accuracy, with advice; the exit status is 0.
    """
    if inputs is not None:
        equal = _compare_runs(options, first, second, inputs, _SECONDS if timeout is None else timeout)
    else:
        if options.model or timeout is not None:
            raise UsageError.needs_another(
                "--model" if options.model else "--timeout",
                "the option applies only if both archives run",
                "add --inputs X.npz, or omit it",
            )
        from mlfbuild.archive.compare import comparison_text
        from mlfbuild.usecases import compare_archives

        comparison = compare_archives(first, second)
        text = comparison_text(comparison, str(first), str(second), verbose=options.verbose)
        show_result(options, {"first": first, "second": second, **comparison.to_json()}, text)
        equal = comparison.equal
    if not equal:
        raise CheckFailedError("archives-differ", place=f"{first} and {second}", reason="their contents differ")


def _compare_runs(options: SharedOptions, first: Path, second: Path, inputs: Path, timeout: float) -> bool:
    from mlfbuild.usecases import compare_runs, is_float_with_quantized

    if is_float_with_quantized(first, second):
        return _compare_quantized(options, first, second, inputs, timeout)
    # One name is for both archives; without a name, each must have one network.
    names = options.model * 2 if len(options.model) == 1 else options.model or (None, None)
    if len(names) != 2:
        raise UsageError(
            "too-many-models",
            place="--model",
            reason=f"{len(names)} models are named for two archives",
            hint="name one for both archives, or one for each",
        )
    with working(options, f"running {first} and {second}"):
        comparison = compare_runs((first, second), (names[0], names[1]), inputs, timeout)
    show_result(options, comparison.to_json(), comparison.text())
    return comparison.equal


def _compare_quantized(options: SharedOptions, first: Path, second: Path, inputs: Path, timeout: float) -> bool:
    from mlfbuild.datasets import DataKeys
    from mlfbuild.quantization import losses_text
    from mlfbuild.usecases import file_losses

    if options.model:
        raise UsageError.not_applicable("--model", "a model file has one network", "omit it")
    with working(options, f"running {first} and {second}"):
        found = file_losses(first, second, DataKeys(inputs), timeout=timeout).to_json()
    text = f"{first} and {second}: {losses_text(found, verbose=options.verbose)}"
    show_result(options, {"first": first, "second": second, **found}, text)
    return True


@verb("format")
@ARCHIVE
@click.option("-o", "output", type=FILE, required=True, metavar="DIR", help="Folder to unpack into.")
@PLACE
@click.option("--optimize", type=click.Choice(LEVELS), default=DEFAULT_LEVEL, help="Optimisation level of its code.")
def unpack(options: SharedOptions, archive: Path, output: Path, places: tuple[str, ...], optimize: str) -> None:
    """Unpack ARCHIVE into a folder that a CMake build includes.

    Files that an earlier unpack wrote are updated or removed. If any other file is in the way, nothing is written and
    the exit status is 6.
    """
    from mlfbuild.usecases import unpack_file

    notify = note_unless_quiet(options)
    result = unpack_file(archive, output, places=places, optimize=optimize, notify=notify)
    written, unchanged, removed = len(result.written), len(result.unchanged), len(result.removed)
    text = f"{output}: {counted(written, 'file')} written, {unchanged} unchanged, {removed} removed"
    show_result(options, {"directory": output, **vars(result)}, text)
