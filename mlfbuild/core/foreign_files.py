"""Recognise files that are given as models but that mlfbuild does not read, and print how to convert them.

``recognised`` reads the first bytes of a file, and its suffix counts only if these are not known. ``named_foreign`` is
for names in the project file, which are checked before any file is read. The conversions are those of the page "From
Keras, PyTorch and scikit-learn" (docs/converting.md), where each command was run.
"""

from __future__ import annotations

import json
import shlex
import zipfile
from pathlib import Path

from mlfbuild.core import InputFileError, MlfError
from mlfbuild.core.mistakes import Mistake

_START = 512
"""Bytes of a file that are read."""
_KERAS_SUFFIXES = (".keras", ".h5", ".hdf5")
_TORCH_SUFFIXES = (".pt", ".pth", ".pt2")
_PICKLE_SUFFIXES = (".pkl", ".pickle", ".joblib")
_HDF5 = b"\x89HDF\r\n\x1a\n"
_ZIP = b"PK\x03\x04"
# The opcode PROTO and its protocol (PEP 307); protocols 0 and 1 have no such mark.
_PICKLES = tuple(bytes((0x80, protocol)) for protocol in range(2, 6))
_OLD_TORCH = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
"""The magic number of ``torch.save`` before PyTorch 1.6, as a pickle."""
# `curl -O` without -f saves the server's error page under the name of the model.
_PAGES = (b"<!doctype html", b"<html", b"<?xml", b"<error")
_IR_VERSION = b"\x08"
"""The tag of the first field of ONNX models."""
_AFTER_IR_VERSION = (b"\x12", b"\x1a", b"\x22", b"\x28", b"\x32", b"\x3a", b"\x42")
"""The tags of fields that follow it: names of the producer, versions, texts, the graph and the opsets."""
_SAVED_MODEL = "saved_model.pb"
# A longer path would fill the hint, and the command would no longer be readable.
_LONGEST_IN_COMMAND = 200


def better_error(error: MlfError, path: Path) -> MlfError:
    """Return the error of reading ``path`` as a model or an archive, or a better one if the file is recognised.

    ``path`` is read again, at most ``_START`` bytes of it, so an error that has nothing to do with the content stays as
    it is: the file must be recognised as something else first.
    """
    mistake = recognised(path) or _of_the_other_kind(error, path)
    if mistake is None:
        return error
    return InputFileError(mistake.code, place=path, reason=mistake.reason, hint=mistake.hint)


def _of_the_other_kind(error: MlfError, path: Path) -> Mistake | None:
    """Return the mistake if an archive was read as a model, or a model as an archive."""
    start = _start(path)
    if start[257:262] == b"ustar" and not error.code.startswith("archive-"):
        hint = "name the file .tar, or choose the compiler archive"
        return Mistake("archive-not-model", reason="the file is an archive, not a model", hint=hint)
    # Models that the user passed to a command for archives: the remedy is to compile them first.
    if error.code == "archive-not-tar" and (start[4:8] == b"TFL3" or path.suffix.lower() == ".onnx"):
        name = in_command(str(path))
        archive = shlex.quote(str(Path(name).with_suffix(".tar")))
        hint = f"compile it: `mlfbuild compile {shlex.quote(name)} --cpu CPU -o {archive}`"
        return Mistake("model-not-archive", reason="the file is a model, not an archive", hint=hint)
    if start[4:8] == b"TFL3" and error.code == "onnx-malformed":
        reason = "the file is a TensorFlow Lite model, not an ONNX model"
        return Mistake("model-of-other-format", reason=reason, hint="rename the file: its name must end with .tflite")
    if start[:1] == _IR_VERSION and start[2:3] in _AFTER_IR_VERSION and error.code == "tflite-malformed":
        reason = "the file is an ONNX model, not a TensorFlow Lite model"
        return Mistake("model-of-other-format", reason=reason, hint="rename the file: its name must end with .onnx")
    return None


def recognised(path: Path) -> Mistake | None:
    """Return why ``path`` is not a model that mlfbuild reads, with a hint how to get one; ``None`` if not recognised.

    Models and archives that mlfbuild reads are never recognised, whatever their suffix.
    """
    if path.is_dir():
        return _saved_model(in_command(str(path))) if (path / _SAVED_MODEL).is_file() else None
    start = _start(path)
    # FlatBuffers have their file identifier at byte 4 (TFL3 in TensorFlow Lite's schema.fbs), tar headers their magic
    # at 257.
    if not start or start[4:8] == b"TFL3" or start[257:262] == b"ustar":
        return None
    if path.name == _SAVED_MODEL:
        return _saved_model(in_command(str(path.parent)))
    # The content decides first: files are renamed more often than they are converted.
    return _by_content(start, path) or named_foreign(str(path))


def _start(path: Path) -> bytes:
    try:
        if not path.is_file():  # the opening of a pipe would wait for a writer
            return b""
        with path.open("rb") as file:
            return file.read(_START)
    except OSError:
        return b""


def _by_content(start: bytes, path: Path) -> Mistake | None:
    if start.removeprefix(b"\xef\xbb\xbf").lstrip().lower().startswith(_PAGES):
        return Mistake(
            "web-page-not-model",
            reason="the file is a web page or an error message of a server, not a model",
            hint="download it again with `curl -fLO URL`, which stops at errors, from the URL of the file itself",
        )
    name = in_command(str(path))
    if start.startswith(_HDF5):
        return _keras(name)
    if start.startswith(_ZIP):
        return _of_zip(path)
    if start.startswith(_OLD_TORCH):
        return _torch(name)
    # A pickle named .pt is one of PyTorch's weights, which `named_foreign` recognises by the suffix.
    return _pickle(name) if start.startswith(_PICKLES) and path.suffix not in _TORCH_SUFFIXES else None


def _of_zip(path: Path) -> Mistake | None:
    try:
        with zipfile.ZipFile(path) as file:
            # torch.save puts everything into a folder with the name of the file; Keras writes to the root.
            names = {member.partition("/")[2] or member for member in file.namelist()}
    except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError):
        return None
    name = in_command(str(path))
    # Keras 3 writes model.weights.h5, torch.export archive_format, and torch.save data.pkl. TorchScript files have
    # data.pkl too, so constants.pkl is looked for first.
    if "model.weights.h5" in names:
        return _keras(name)
    if "archive_format" in names:
        return _torch_program(name)
    if "constants.pkl" in names:
        return _torch_script(name)
    return _torch(name) if "data.pkl" in names else None


def named_foreign(name: str) -> Mistake | None:
    """Return why the file called ``name`` is not a model that mlfbuild reads, by its suffix; ``None`` if not known.

    The content is not read, so a file with a misleading suffix is taken for what its name says; ``recognised`` reads
    it.
    """
    suffix, name = Path(name).suffix.lower(), in_command(name)
    if suffix in _KERAS_SUFFIXES:
        return _keras(name)
    if suffix in _TORCH_SUFFIXES:
        return _torch_program(name) if suffix == ".pt2" else _torch(name)
    return _pickle(name) if suffix in _PICKLE_SUFFIXES else None


# Conversions of a file whose name is fit for a command ----------------------------------------------------------------


def _saved_model(path: str) -> Mistake:
    target = shlex.quote(f"{path.rstrip('/')}.tflite")
    hint = f"convert it: `tflite_convert --saved_model_dir={shlex.quote(path)} --output_file={target}`"
    return Mistake("saved-model-not-converted", reason="the folder is a SavedModel of TensorFlow", hint=hint)


def _keras(path: str) -> Mistake:
    code = (
        f'import tensorflow as tf; open({_converted(path, ".tflite")}, "wb").write('
        f"tf.lite.TFLiteConverter.from_keras_model(tf.keras.models.load_model({json.dumps(path)})).convert())"
    )
    return Mistake("keras-model-not-converted", reason="the file is a Keras model", hint=f"convert it: {_python(code)}")


def _torch(path: str) -> Mistake:
    reason = "the file has weights of PyTorch, but no graph of the network"
    code = f"torch.onnx.export(network.eval(), (example,), {_converted(path, '.onnx')}, external_data=False)"
    hint = f"export the network in Python, with these weights and an example of its input: `{code}`"
    return Mistake("pytorch-model-not-converted", reason=reason, hint=hint)


def _torch_script(path: str) -> Mistake:
    source, target = json.dumps(path), _converted(path, ".onnx")
    code = f"torch.onnx.export(torch.jit.load({source}), (example,), {target}, dynamo=False)"
    hint = f"export it in Python, with an example of its input: `{code}`"
    return Mistake("torchscript-not-converted", reason="the file is a TorchScript program of PyTorch", hint=hint)


def _torch_program(path: str) -> Mistake:
    code = (
        f"import torch; torch.onnx.export(torch.export.load({json.dumps(path)}), (), {_converted(path, '.onnx')}, "
        "external_data=False)"
    )
    reason = "the file is an exported program of PyTorch"
    return Mistake("pytorch-program-not-converted", reason=reason, hint=f"convert it: {_python(code)}")


def _pickle(path: str) -> Mistake:
    code = (
        f"import joblib, numpy, onnx, skl2onnx; m = joblib.load({json.dumps(path)}); "
        'onnx.save(skl2onnx.to_onnx(m, numpy.zeros((1, m.n_features_in_), "float32"), '
        'options={"zipmap": False} if hasattr(m, "predict_proba") else None), '
        f"{_converted(path, '.onnx')})"
    )
    reason = "the file is a pickle of Python, such as a scikit-learn model"
    return Mistake("pickle-not-converted", reason=reason, hint=f"convert it: {_python(code)}")


def in_command(path: str) -> str:
    """Return ``path`` for a command in a hint, or a placeholder if the path is too long or has control characters.

    The hint then has ``MODEL`` in its place, so that a copied command fails instead of doing something else.
    """
    return path if path.isprintable() and len(path) <= _LONGEST_IN_COMMAND else "MODEL"


def _converted(path: str, suffix: str) -> str:
    """Return the path of the result as a string of Python, in the double quotes that suit a shell's single ones."""
    return json.dumps(str(Path(path).with_suffix(suffix)))


def _python(code: str) -> str:
    return f"`python -c {shlex.quote(code)}`"
