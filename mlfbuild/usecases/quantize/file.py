"""Quantise one model file without a project."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from mlfbuild.core import MlfError, UsageError
from mlfbuild.jobs import check_replaced
from mlfbuild.library import OptionValue
from mlfbuild.native import Choices
from mlfbuild.quantization import QuantizedNetwork, QuantizeKeys, is_quantized, quantize


def quantize_file(
    model: Path, output: Path, keys: QuantizeKeys, options: Mapping[str, OptionValue] | None = None
) -> QuantizedNetwork:
    """Quantise the file ``model`` as ``keys`` say, and write ``output``, in the same format.

    ``options`` are sizes of free dimensions, ``{"dim.time": 16}``. Raises as ``quantize``, ``UsageError`` for another
    suffix or option, and ``ConflictError`` if ``output`` exists and is no quantised network.
    """
    if output.suffix.lower() != model.suffix.lower():
        raise UsageError(
            "quantize-output-format",
            place=f"-o {output}",
            reason="a quantised network has the format of the float one",
            hint=f"name a {model.suffix} file",
        )
    choices = Choices.of(options or {})
    other = next((key for key in options or {} if key not in Choices(choices.dims).options()), None)
    if other is not None:
        raise UsageError.not_applicable(f"-O {other}", "only sizes of dimensions apply", "write -O dim.NAME=SIZE")
    check_replaced(output, (model,), "file", "quantised network", partial(_may_be_replaced, choices))
    return quantize(model, keys, output, choices)


def _may_be_replaced(choices: Choices, path: Path) -> bool:
    try:
        return not path.stat().st_size or is_quantized(path, choices)
    except MlfError:
        return False
