"""``mlfbuild quantize``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mlfbuild.cli.options import SharedOptions, setting, verb
from mlfbuild.cli.output.printing import note, show, show_json, show_notes
from mlfbuild.cli.output.progress import building, showing_progress, working
from mlfbuild.core import CheckFailedError, UsageError, write_atomic
from mlfbuild.quantization import ACTIVATIONS, IO, METHOD_WORDS, WEIGHTS

if TYPE_CHECKING:
    from mlfbuild.library import OptionValue
    from mlfbuild.project import Changes, Project
    from mlfbuild.quantization import QuantizeKeys
    from mlfbuild.usecases import ImproveResult, ImproveStep

_FILE = click.Path(path_type=Path)
_ACTIVATIONS, _WEIGHTS, _IO = map(click.Choice, (ACTIVATIONS, WEIGHTS, IO))
_METHOD = click.Choice(METHOD_WORDS)


@verb("file", "jobs", "no_wait", "format")
@click.argument("model", type=_FILE)
@click.option("--calibration", type=_FILE, metavar="X.npz", help="Cases like those of the field.")
@click.option("-o", "output", type=_FILE, metavar="OUT", help="File to write, in the same format.")
@click.option("--improve", is_flag=True, help="Change settings, one by one, until it is within limits.")
@click.option(
    "--evaluate", "limits", multiple=True, metavar="KEY=VALUE", help="Of a file: key of evaluate; repeatable."
)
@click.option("--write", is_flag=True, help="Write the improved keys into the project file.")
@click.option("--activations", type=_ACTIVATIONS, metavar="TYPE", help="int8 or int16; default int8.")
@click.option("--weights", type=_WEIGHTS, metavar="TYPE", help="int8 or int4; default int8.")
@click.option("--per-tensor", is_flag=True, help="One scale for all weights of a layer.")
@click.option("--method", type=_METHOD, metavar="METHOD", help="How ranges become scales; default minmax.")
@click.option("--keep-float", multiple=True, metavar="NAME", help="Node or operator to keep in float; repeatable.")
@click.option("--io", type=_IO, metavar="TYPE", help="Type of inputs and outputs, or float32.")
@click.option("-O", "settings", multiple=True, metavar="dim.NAME=N", help="Size of a free dimension; repeatable.")
def quantize(
    options: SharedOptions,
    model: Path,
    calibration: Path | None,
    output: Path | None,
    improve: bool,
    limits: tuple[str, ...],
    write: bool,
    per_tensor: bool,
    keep_float: tuple[str, ...],
    settings: tuple[str, ...],
    **given: str | None,
) -> None:
    """Quantise the float network MODEL with the tool of its format.

    MODEL is a .tflite or .onnx file. Its ranges are measured with the cases in X.npz: arrays in0.. or in_NAME, whose
    first axis counts cases. ai-edge-quantizer or ONNX Runtime quantises it, which must be installed.

    In a project, the key `quantize` of a model makes this a step of the build. With --improve, MODEL may be such a
    model: while it misses a limit of its key `evaluate`, what `mlfbuild compare` advises is applied, one piece at a
    time. The keys to write are printed, and with --write also written. For a file, the limits are --evaluate
    data=test.npz --evaluate metric=top1 --evaluate max-drop=0.01. The exit status is 1 if no advice is left.
    """
    from mlfbuild.quantization import QuantizeKeys, engine_of

    if improve and engine_of(model) is None:
        own = {"calibration": calibration, "per_tensor": per_tensor, "keep_float": keep_float, "O": settings}
        _refuse_settings(**own, evaluate=limits, **given)
        _improve(options, str(model), output, write=write)
        return
    for name, value in (("--write", write), ("--evaluate", limits and not improve)):
        if value:
            of = "it is for a model of a project" if write else "it has the limits to reach"
            hint = "name a model of the project" if improve else "add --improve"
            raise UsageError.needs_another(name, of, hint)
    if calibration is None or output is None:
        place, why = ("-o", "the file to write") if output is None else ("--calibration", "the data")
        raise UsageError("quantize-option-missing", place=place, reason=f"names {why}", hint="add it")
    _refuse_project(options)
    from mlfbuild.datasets import DataKeys
    from mlfbuild.usecases import quantize_file

    chosen = {key: value for key, value in given.items() if value is not None}
    keys = QuantizeKeys(DataKeys(calibration), per_channel=not per_tensor, keep_float=keep_float, **chosen)
    sizes = dict(setting(text) for text in settings)
    if improve:
        _improve_file(options, model, output, keys, dict(setting(text, "--evaluate") for text in limits), sizes)
        return
    with working(options, f"quantising {model}"):
        result = quantize_file(model, output, keys, sizes)
    if options.json:
        show_json({"file": output, "cases": result.cases, "operators": result.operators, "warnings": result.warnings})
    elif not options.quiet:
        show(f"{output}: {result.summary}, {output.stat().st_size:,} bytes")
    show_notes(options, model.name, result.notes)


def _refuse_settings(**settings: object) -> None:
    for name, value in settings.items():
        if value:
            option = f"-{name}" if len(name) == 1 else f"--{name.replace('_', '-')}"
            reason = "--improve takes settings from the project file"
            raise UsageError.not_applicable(option, reason, "write the key quantize of the model")


def _refuse_project(options: SharedOptions) -> None:
    for name in sorted({"file", "jobs", "no_wait"} & options.given):
        reason, hint = "it is for a project", "name a model of it, and add --improve"
        raise UsageError.needs_another(f"--{name.replace('_', '-')}", reason, hint)


def _improve(options: SharedOptions, model: str, output: Path | None, *, write: bool) -> None:
    from mlfbuild.jobs import chosen_names, load
    from mlfbuild.usecases import improve_model

    project = load(options.file)
    chosen_names("model", [model], project.models)
    if output is not None and output.suffix != project.models[model].source.suffix:
        raise UsageError.not_applicable(f"-o {output}", "the file has the format of the model", "name such a file")

    with building(options, project) as progress:
        result = improve_model(
            project, model, jobs=options.jobs, progress=progress, on_step=partial(_tell, options, "the project file")
        )
    if output is not None:
        write_atomic(output, result.content)
    if write and result.best.changes:
        _write(options, project, model, result.best)
    _show_improved(options, result, {"model": model}, f"models.{model}.quantize", f"{project.path}: models.{model}")


def _improve_file(
    options: SharedOptions,
    model: Path,
    output: Path,
    keys: QuantizeKeys,
    limits: Mapping[str, OptionValue],
    sizes: Mapping[str, OptionValue],
) -> None:
    from mlfbuild.usecases import improve_file

    tell = partial(_tell, options, "the command line")
    with showing_progress(options, "improve") as progress:
        result = improve_file(model, output, keys, limits, sizes, progress=progress, on_step=tell)
    if not options.json and not options.quiet:
        note(f"{output}: written")
    _show_improved(options, result, {"file": output}, "quantize", str(model))


def _tell(options: SharedOptions, start: str, step: ImproveStep) -> None:
    if not options.json and not options.quiet:
        note(f"{_keys_text(step) or f'as in {start}'}: {step.report.text()}")


def _show_improved(
    options: SharedOptions, result: ImproveResult, named: Mapping[str, object], title: str, place: str
) -> None:
    """Show what was tried, and the best keys after ``title``; raise ``CheckFailedError`` if a limit is still missed."""
    best = result.best
    if options.json:
        steps = [{"changes": each.changes, "kept": each.kept, **each.report.as_json()} for each in result.steps]
        show_json({**named, "steps": steps, "changes": best.changes, "passed": best.report.passed})
    elif best.changes:
        show(f"{title}: {{{_keys_text(best)}}}")
    if not best.report.passed:
        reason = f"no advice is left, and {best.report.summary()}"
        hint = "try other or more calibration data, or train with quantisation"
        raise CheckFailedError("improvement-short", place=place, reason=reason, hint=hint)


def _write(options: SharedOptions, project: Project, model: str, best: ImproveStep) -> None:
    from mlfbuild.usecases import renew_lock, write_values

    # An empty text is the value of an absent key.
    changes: Changes = {
        ("models", model, "quantize", key): None if value == "" else value for key, value in best.changes.items()
    }
    write_values(project, changes, f"models.{model}.quantize: {{{_keys_text(best)}}}")
    for path in (project.path, *renew_lock(project, model, jobs=options.jobs)):
        note(f"{path}: written")


def _keys_text(step: ImproveStep) -> str:
    """Return the changed keys as they are written in a project file."""
    return ", ".join(f"{key}: {_value_text(value)}" for key, value in step.changes.items())


def _value_text(value: object) -> str:
    return f"[{', '.join(map(str, value))}]" if isinstance(value, list) else str(value).lower()
