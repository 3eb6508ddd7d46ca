"""Verbs that work on archives alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mlfbuild.cli.options import Settings, verb
from mlfbuild.cli.output import show, show_json
from mlfbuild.core import CheckFailedError, UsageError, counted, listed

if TYPE_CHECKING:
    from mlfbuild.usecases import Identity

_FILE = click.Path(path_type=Path)
_ARCHIVE = click.argument("archive", type=_FILE)
_OUTPUT = click.option("-o", "output", type=_FILE, required=True, metavar="OUT.tar", help="Archive to write.")


@verb("model", "format")
@_ARCHIVE
def inspect(settings: Settings, archive: Path) -> None:
    """Tell what ARCHIVE holds: modules, inputs and outputs, memory, files.

    Long lists show their largest entries; -v shows all, and so does --format json. Of a firmware image, an ELF or the
    bytes of its flash, tells which models it has.
    """
    from mlfbuild.usecases import inspect as inspected, inspect_text, models_in_image

    found = models_in_image(archive)
    if found is not None:
        _show_models(settings, archive, found)
    elif settings.json:
        show_json(inspected(archive, settings.model))
    else:
        show(inspect_text(archive, settings.model, verbose=settings.verbose))


def _show_models(settings: Settings, image: Path, found: Sequence[Identity]) -> None:
    if settings.json:
        show_json({"image": image, "models": found})
        return
    width = max(len(identity.model) for identity in found)
    lines = (
        f"  {identity.model:{width}}  sha256 {identity.sha256}"
        + (f"  compiled by mlfbuild {identity.version}" if identity.version else "")
        for identity in found
    )
    show("\n".join([f"{counted(len(found), 'model')} in {image}", *lines]))


@verb("format")
@_ARCHIVE
@click.option("--strict", is_flag=True, help="Let warnings fail, too.")
def validate(settings: Settings, archive: Path, strict: bool) -> None:
    """Judge ARCHIVE by the rules of Model Library Format.

    Each finding has a code, which docs/validate.md explains. Exit status 1 where there is an error, 5 where ARCHIVE
    cannot be read. With -q, nothing is printed of an archive without errors.
    """
    from mlfbuild.usecases import validate_archive

    report = validate_archive(archive)
    errors, warnings = report.count("error"), report.count("warning")
    failed = report.failed or (strict and warnings > 0)
    if settings.json:
        show_json({**report.to_json(), "strict": strict, "passed": not failed})
    elif failed or not settings.quiet:
        show(report.text())
    if failed:
        reason = f"is not valid: {counted(errors, 'error')}" if errors else f"{counted(warnings, 'warning')} (--strict)"
        raise CheckFailedError(f"{archive}: {reason}; see above")


@verb("format")
@_ARCHIVE
@click.option("--to", "version", type=int, default=7, show_default=True, metavar="VERSION",
              help="Version of the format to write: 7, 6 or 5.")  # fmt: skip
@click.option("--module-name", "names", multiple=True, metavar="[OLD=]NEW", help="Call a module NEW, in all its code.")
@_OUTPUT
def convert(settings: Settings, archive: Path, version: int, names: tuple[str, ...], output: Path) -> None:
    """Write ARCHIVE in another version of the format, without losing anything.

    What the version cannot hold, as several modules before 7, is refused with exit status 2. Archives whose modules
    have one name, as TVM's "default", fit into one firmware when one of them gets another.
    """
    from mlfbuild.build import check_output
    from mlfbuild.usecases import convert_archive

    check_output(output, archive)
    size = convert_archive(archive, version, output, names)
    if settings.json:
        show_json({"archive": output, "version": version, "size": size})
    elif not settings.quiet:
        show(f"{output}: version {version}, {size:,} bytes")


@verb("format")
@click.argument("archives", type=_FILE, nargs=-1, required=True)
@_OUTPUT
def merge(settings: Settings, archives: tuple[Path, ...], output: Path) -> None:
    """Write several ARCHIVES as one, which one firmware can link.

    Modules, symbols and dependencies that cannot stand side by side are refused with exit status 1.
    """
    from mlfbuild.build import check_output
    from mlfbuild.usecases import merge_archives

    check_output(output, *archives)
    modules = merge_archives(archives, output)
    size = output.stat().st_size
    if settings.json:
        show_json({"archive": output, "modules": modules, "size": size})
    elif not settings.quiet:
        show(f"{output}: {counted(len(modules), 'module')} ({listed(modules)}), {size:,} bytes")


@verb("model", "format")
@click.argument("first", type=_FILE)
@click.argument("second", type=_FILE)
@click.option("--inputs", type=_FILE, metavar="X.npz",
              help="Run both on these: arrays in0 or in_NAME or NAME, the first axis counts cases.")  # fmt: skip
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS",
              help="What one case may take, default 60.")  # fmt: skip
def compare(settings: Settings, first: Path, second: Path, inputs: Path | None, timeout: float | None) -> None:
    """Compare two archives by meaning: modules, interface, memory, code, weights.

    The version of the format, dates and the text of programs are told, but are no difference. Exit status 0 where both
    mean the same, 1 where they differ. With -q, nothing is printed but that they differ.

    With --inputs they are compared by what they compute: a network of each runs on this machine, and the first operator
    whose result differs is named. Give --model twice where the two have different names.
    """
    if inputs is not None:
        _compare_runs(settings, first, second, inputs, 60.0 if timeout is None else timeout)
        return
    if settings.model or timeout is not None:
        raise UsageError(
            f"{'--model' if settings.model else '--timeout'}: is for running both; add --inputs X.npz, or leave it out"
        )
    from mlfbuild.usecases import compare_archives, comparison_text

    comparison = compare_archives(first, second)
    if settings.json:
        show_json({"first": first, "second": second, **comparison.to_json()})
    elif not settings.quiet:
        show(comparison_text(comparison, str(first), str(second), verbose=settings.verbose))
    if not comparison.equal:
        raise CheckFailedError(f"{first} and {second} differ")


def _compare_runs(settings: Settings, first: Path, second: Path, inputs: Path, timeout: float) -> None:
    from mlfbuild.usecases import compare_runs

    names = settings.model * 2 if len(settings.model) == 1 else settings.model or (None, None)
    if len(names) != 2:
        raise UsageError("--model: name one for both archives, or one for each")
    comparison = compare_runs((first, second), (names[0], names[1]), inputs, timeout)
    if settings.json:
        show_json(comparison.to_json())
    elif not settings.quiet:
        show(comparison.text())
    if not comparison.equal:
        raise CheckFailedError(f"{first} and {second} differ")
