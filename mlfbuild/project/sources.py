"""Kinds of model files, recognised by the file's name."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from mlfbuild.core import Mistake, in_command, in_quotes, named_foreign
from mlfbuild.project.program import EXTERNAL_COMPILERS

SOURCES: Mapping[str, str] = {
    ".tflite": "native",
    ".onnx": "native",
    ".tar": "archive",
    ".tar.gz": "archive",
    ".tgz": "archive",
    ".tar.bz2": "archive",
    ".model-lib": "archive",
    ".model-library-format": "archive",
}
"""Suffix -> the compiler that reads such files. The last two are names of the format's first design and of AutoTVM."""


def source_suffix(source: str) -> str:
    """Return the suffix of a model file in lower case: ``.tflite``, ``.tar.gz``; empty if it has none.

    Only a compressed tar has two parts: ``kws.v2.tflite`` has ``.tflite``, ``kws.v2.tar.gz`` has ``.tar.gz``.
    """
    name = source.replace("\\", "/").rpartition("/")[2].lower()
    dot = name.rfind(".")
    if name[dot:] in {".gz", ".bz2"} and name[:dot].endswith(".tar"):
        dot -= len(".tar")
    return name[dot:] if dot >= 0 else ""


def source_problem(value: str) -> Mistake | None:
    """Return why mlfbuild itself cannot read the model file ``value``, by its name; ``None`` if it can."""
    if source_suffix(value) in SOURCES:
        return None
    foreign = named_foreign(value)
    if foreign is not None:
        return foreign
    if not source_suffix(value):
        name = in_command(value)
        words = f"--saved_model_dir={shlex.quote(name)} --output_file={shlex.quote(f'{name}.tflite')}"
        return Mistake(
            "unsupported-model-file",
            reason=f"{in_quotes(value)} is not a .tflite, .onnx or archive file",
            hint=f"if it is a SavedModel, convert it: `tflite_convert {words}`",
        )
    others = " or ".join(f'"compiler: {name}"' for name in EXTERNAL_COMPILERS)
    return Mistake(
        "unsupported-model-file",
        reason=f"{in_quotes(value)} is not a .tflite, .onnx or archive file",
        hint=f"set {others} for other files",
    )
