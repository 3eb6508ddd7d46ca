"""Quantise one model file without a project, or improve how it is quantised."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import yaml

from mlfbuild.core import MlfError, ProjectFileError, UsageError, write_atomic
from mlfbuild.evaluation import LIMITS
from mlfbuild.jobs import Progress, check_replaced, default_name, load
from mlfbuild.library import OptionValue
from mlfbuild.native import Choices
from mlfbuild.quantization import QuantizedNetwork, QuantizeKeys, is_quantized, quantize
from mlfbuild.usecases.quantize.improving import ImproveResult, ImproveStep, improve_model


def quantize_file(
    model: Path, output: Path, keys: QuantizeKeys, options: Mapping[str, OptionValue] | None = None
) -> QuantizedNetwork:
    """Quantise the file ``model`` as ``keys`` say, and write ``output``, in the same format.

    ``options`` are sizes of free dimensions, ``{"dim.time": 16}``. Raises as ``quantize``, ``UsageError`` for another
    suffix or option, and ``ConflictError`` if ``output`` exists and is not a quantised network.
    """
    choices = _checked_output(model, output, options or {})
    return quantize(model, keys, output, choices)


def improve_file(
    model: Path,
    output: Path,
    keys: QuantizeKeys,
    limits: Mapping[str, OptionValue],
    options: Mapping[str, OptionValue] | None = None,
    *,
    progress: Progress | None = None,
    on_step: Callable[[ImproveStep], None] = lambda _: None,
) -> ImproveResult:
    """Quantise the file ``model`` as ``keys`` say, improve it as ``improve_model``, and write the best to ``output``.

    ``limits`` are the keys of ``evaluate`` as in a project file: ``{"data": "test.npz", "metric": "top1", "max-drop":
    0.01}``, without functions of the user. All is built in a temporary folder, for this machine. Raises as
    ``quantize_file`` and ``improve_model``, and ``UsageError`` for other keys.
    """
    choices, place = _checked_output(model, output, options or {}), "--evaluate"
    if not {"data", "metric"} <= limits.keys() or not LIMITS.keys() & limits.keys() or ":" in str(limits["metric"]):
        reason = "it needs data, a metric that is no function, and a limit"
        hint = f"add {place} data=test.npz {place} metric=top1 {place} max-drop=0.01"
        raise UsageError("improve-limits-missing", place=place, reason=reason, hint=hint)
    quantized = {name.replace("_", "-"): value for name, value in vars(keys).items() if value not in ("", ())}
    entry = {
        "source": str(model.absolute()),
        "quantize": {**quantized, "calibration": str(keys.calibration.source.absolute())},
        "evaluate": {**limits, "data": str(Path(str(limits["data"])).absolute())},
        **({"dims": dict(choices.dims)} if choices.dims else {}),
    }
    name = default_name(model)
    with tempfile.TemporaryDirectory(prefix="mlfbuild-improve-") as folder:
        path = Path(folder) / "mlfbuild.yml"
        path.write_text(yaml.safe_dump({"mlfbuild": 1, "targets": ["host"], "models": {name: entry}}), "utf-8")
        try:
            result = improve_model(load(path), name, progress=progress, on_step=on_step)
        except ProjectFileError as error:
            raise _of_options(error) from None
    write_atomic(output, result.content)
    return result


def _of_options(error: ProjectFileError) -> MlfError:
    """Return the first mistake of a project file that the user has not written, at the option that it comes from."""
    first = error.problems[0]
    if isinstance(first, str):
        return error
    section, _, key = first.place.rpartition(": ")[2].rpartition(".")
    place = f"--evaluate {key}" if section.endswith(".evaluate") else f"--{key}"
    return UsageError(first.code, place=place, reason=first.reason, hint=first.hint)


def _checked_output(model: Path, output: Path, options: Mapping[str, OptionValue]) -> Choices:
    """Return the sizes of dimensions; raises unless ``output`` may be written, and for other ``options``."""
    if output.suffix.lower() != model.suffix.lower():
        raise UsageError(
            "quantize-output-format",
            place=f"-o {output}",
            reason="a quantised network has the format of the float one",
            hint=f"name a {model.suffix} file",
        )
    choices = Choices.of(options)
    other = next((key for key in options if key not in Choices(choices.dims).options()), None)
    if other is not None:
        raise UsageError.not_applicable(f"-O {other}", "only sizes of dimensions apply", "write -O dim.NAME=SIZE")
    check_replaced(output, (model,), "file", "quantised network", partial(_may_be_replaced, choices))
    return choices


def _may_be_replaced(choices: Choices, path: Path) -> bool:
    try:
        return not path.stat().st_size or is_quantized(path, choices)
    except MlfError:
        return False
