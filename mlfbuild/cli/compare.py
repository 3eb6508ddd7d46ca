"""``mlfbuild compare``."""

from __future__ import annotations

from pathlib import Path

import click

from mlfbuild.cli.options import INPUTS, SharedOptions, timeout_option, verb
from mlfbuild.cli.output.printing import show, show_json
from mlfbuild.cli.output.progress import working
from mlfbuild.core import CheckFailedError, UsageError

_FILE = click.Path(path_type=Path)
_SECONDS = 60.0


@verb("model", "format")
@click.argument("first", type=_FILE)
@click.argument("second", type=_FILE)
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
    result differs is named. Give --model twice if the two have different names.
    """
    if inputs is not None:
        _compare_runs(options, first, second, inputs, _SECONDS if timeout is None else timeout)
        return
    if options.model or timeout is not None:
        raise UsageError.needs_another(
            "--model" if options.model else "--timeout",
            "the option applies only if both archives run",
            "add --inputs X.npz, or omit it",
        )
    from mlfbuild.archive.compare import comparison_text
    from mlfbuild.usecases import compare_archives

    comparison = compare_archives(first, second)
    if options.json:
        show_json({"first": first, "second": second, **comparison.to_json()})
    elif not options.quiet:
        show(comparison_text(comparison, str(first), str(second), verbose=options.verbose))
    if not comparison.equal:
        raise _differ(first, second)


def _compare_runs(options: SharedOptions, first: Path, second: Path, inputs: Path, timeout: float) -> None:
    from mlfbuild.usecases import compare_runs

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
    if options.json:
        show_json(comparison.to_json())
    elif not options.quiet:
        show(comparison.text())
    if not comparison.equal:
        raise _differ(first, second)


def _differ(first: Path, second: Path) -> CheckFailedError:
    return CheckFailedError("archives-differ", place=f"{first} and {second}", reason="their contents differ")
