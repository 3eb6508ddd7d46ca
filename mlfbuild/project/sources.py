"""Kinds of model files, recognised by the file's name."""

from __future__ import annotations

import re
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


def model_name(source: str) -> str:
    """Return the default name of a model as a C identifier, such as ``kws_v2`` for ``models/KWS-v2.tflite``.

    Other characters become ``_``. A name that does not begin with a letter, or that the generated build uses itself,
    gets the prefix ``model_``. Two files may have the same result.
    """
    file = source.replace("\\", "/").rpartition("/")[2]
    name = re.sub(r"[^a-z0-9_]", "_", file[: len(file) - len(source_suffix(file))].lower())
    # These are names of CMake targets (mlf::board) and of folders in the tree.
    taken = not re.match("[a-z]", name) or name in {"board", "models", "placement", "dependencies"}
    return f"model_{name}" if taken else name


def source_problem(value: str) -> Mistake | None:
    """Return why mlfbuild itself cannot read the model file ``value``, by its name; ``None`` if it can.

    ``value`` is a path as the user wrote it; the file is not read. The hint is the command that converts the file, if
    its kind is known by its suffix.
    """
    if source_suffix(value) in SOURCES:
        return None
    foreign = named_foreign(value)
    if foreign is not None:
        return foreign
    others = " or ".join(f'"compiler: {name}"' for name in EXTERNAL_COMPILERS)
    hint = f"set {others} for other files"
    if not source_suffix(value):
        name = in_command(value)
        words = f"--saved_model_dir={shlex.quote(name)} --output_file={shlex.quote(f'{name}.tflite')}"
        hint = f"if it is a SavedModel, convert it: `tflite_convert {words}`"
    reason = f"{in_quotes(value)} is not a .tflite, .onnx or archive file"
    return Mistake("unsupported-model-file", reason=reason, hint=hint)
