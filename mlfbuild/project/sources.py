"""Kinds of model files, told by the file's name."""

from __future__ import annotations

from collections.abc import Mapping

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
    """Return the suffix that tells a model file's kind, in lower case: ``.tflite``, ``.tar.gz``; empty without one."""
    name = source.replace("\\", "/").rpartition("/")[2].lower()
    dot = name.rfind(".")
    if name[dot:] in {".gz", ".bz2"} and name[:dot].endswith(".tar"):
        dot -= len(".tar")
    return name[dot:] if dot >= 0 else ""
