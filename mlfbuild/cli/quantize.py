"""``mlfbuild quantize``."""

from __future__ import annotations

from pathlib import Path

import click

from mlfbuild.cli.options import SharedOptions, setting, verb
from mlfbuild.cli.output.printing import show, show_json, show_notes
from mlfbuild.cli.output.progress import working
from mlfbuild.quantization import ACTIVATIONS, IO, METHOD_WORDS, WEIGHTS

_FILE = click.Path(path_type=Path)
_ACTIVATIONS, _WEIGHTS, _IO = map(click.Choice, (ACTIVATIONS, WEIGHTS, IO))
_METHOD = click.Choice(METHOD_WORDS)


@verb("format")
@click.argument("model", type=_FILE)
@click.option("--calibration", type=_FILE, required=True, metavar="X.npz", help="Cases like those of the field.")
@click.option("-o", "output", type=_FILE, required=True, metavar="OUT", help="File to write, in the same format.")
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
    calibration: Path,
    output: Path,
    per_tensor: bool,
    keep_float: tuple[str, ...],
    settings: tuple[str, ...],
    **given: str | None,
) -> None:
    """Quantise the float network MODEL with the tool of its format.

    MODEL is a .tflite or .onnx file. Its ranges are measured with the cases in X.npz: arrays in0.. or in_NAME, whose
    first axis counts cases. ai-edge-quantizer or ONNX Runtime quantises it, which must be installed.

    In a project, the key `quantize` of a model makes this a step of the build.
    """
    from mlfbuild.datasets import DataKeys
    from mlfbuild.quantization import QuantizeKeys
    from mlfbuild.usecases import quantize_file

    chosen = {key: value for key, value in given.items() if value is not None}
    keys = QuantizeKeys(DataKeys(calibration), per_channel=not per_tensor, keep_float=keep_float, **chosen)
    with working(options, f"quantising {model}"):
        result = quantize_file(model, output, keys, dict(setting(text) for text in settings))
    if options.json:
        show_json({"file": output, "cases": result.cases, "operators": result.operators, "warnings": result.warnings})
    elif not options.quiet:
        show(f"{output}: {result.summary}, {output.stat().st_size:,} bytes")
    show_notes(options, model.name, result.notes)
