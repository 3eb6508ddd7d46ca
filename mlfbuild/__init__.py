"""mlfbuild puts machine-learning models into microcontroller firmware.

This is the API for scripts and notebooks; builds use the command ``mlfbuild``, SCons or CMake. ``compile`` makes an
``Archive`` of a model file, which prints itself, runs on this machine and compares itself with another one::

    archive = mlfbuild.compile("kws.tflite", cpu="cortex-m4", options={"memory": "smallest"})
    outputs = archive.run({"input_1": spectrogram})
    archive.save("kws.tar")

``load`` runs a network of an archive or of a model file, and keeps its state::

    model = mlfbuild.load("kws.tar")
    outputs = model.run({"input_1": spectrogram})

``open_archive`` and ``write_archive`` read and write all content of an archive, as the values of ``mlfbuild.library``::

    library = mlfbuild.open_archive("kws.tar")
    for tensor in library.module("kws").inputs:
        print(tensor.name, tensor.dtype, tensor.shape, tensor.size)
    mlfbuild.write_archive(library, "again.tar")

``docs/architecture.md`` describes the rooms of the package.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlfbuild.library import Library
    from mlfbuild.usecases import Archive
    from mlfbuild.verify.host import Model

__all__ = ["compile", "load", "open_archive", "write_archive"]

__version__ = "0.1.0"


def compile(  # noqa: A001 - the verb of the command, and called as mlfbuild.compile
    model: str | os.PathLike[str],
    cpu: str = "host",
    *,
    name: str = "",
    executor: str = "",
    options: Mapping[str, str | int | float | bool] | None = None,
) -> Archive:
    """Return the ``Archive`` of ``model``, a ``.tflite`` or ``.onnx`` file or an archive, compiled for ``cpu``.

    ``cpu`` is a name of the project file, such as ``cortex-m4``; ``host`` is this machine. ``name`` is the model's name
    in C, by default that of the file; ``executor`` is ``aot`` (default) or ``graph``; ``options`` are those of the
    compiler, as in the project file. Nothing is written.

    Raises ``mlfbuild.core.UsageError`` for an unknown CPU, name or option, ``InputFileError`` if the file is missing,
    damaged or of another kind, ``UnsupportedModelError`` if the compiler does not support the model, and
    ``ToolNotFoundError`` if a package that reads the file is not installed.
    """
    # Imported here, as in the functions below: `import mlfbuild` must stay fast, because every command pays for it.
    from pathlib import Path

    from mlfbuild.usecases import compiled_archive

    return compiled_archive(Path(model), cpu, name=name, executor=executor, options=options)


def open_archive(path: str | os.PathLike[str]) -> Library:
    """Return the content of the Model Library Format archive ``path``, of any version from 1 to 7 and either style.

    Plain, gzip, bzip2 and xz tars are recognised by their content. The value and its parts are described in
    ``mlfbuild.library.value``. In short, of each module:

    - ``inputs`` and ``outputs`` are in call order, each with the name of its dtype (``int8``, ``float32``, ...), its
      shape (``None`` if the archive does not record it) and its size in bytes;
    - all memory is in bytes: ``main`` by device, ``operator_functions``, ``storage`` by storage id, ``pools``;
    - ``params`` maps names to numpy arrays, row-major and read-only, in the order of the file; types that numpy lacks,
      such as ``bfloat16``, are those of ``ml_dtypes``;
    - ``graph_json``, ``source_text`` and the contents of ``codegen`` are ``bytes``, or are read from the file by
      ``bytes(...)``.

    Contents and parameters are read from the file each time they are used. The file stays open while a part of it is
    in use; it may be replaced or deleted, but not changed in place. A compressed archive is unpacked into a temporary
    file of at most 1 GiB.

    Raises ``mlfbuild.core.InputFileError``, with the member as its place, if the file is missing, unsafe, damaged or
    not an archive that TVM or mlfbuild could have written; ``ToolNotFoundError`` if its parameters are BSON and the
    package that reads it is not installed; ``StorageError`` if the disk is too small for the temporary file.

    Source of the format: TVM's ``python/tvm/micro/model_library_format.py`` (0.8 to 0.18), ``SaveParams`` of its
    runtime, and the RFCs that led to them.
    """
    from pathlib import Path

    from mlfbuild.archive import open_archive as open_file

    return open_file(Path(path))


def write_archive(library: Library, path: str | os.PathLike[str], version: int | None = None) -> None:
    """Write ``library`` to the file ``path``, an uncompressed tar in Model Library Format ``version`` (1 to 7).

    The default is 7. Equal libraries give equal bytes on every machine: the only date in them is 1980-01-01, or
    ``SOURCE_DATE_EPOCH`` (seconds since 1970) if that is set. The file appears whole or not at all, and its folder is
    created. An existing file is replaced, even if ``library`` was opened from it. Contents are copied in parts, so an
    archive may be larger than the memory.

    Raises ``mlfbuild.core.UsageError`` if the version cannot hold the library, if a file has a path that no archive can
    hold (absolute, with ``..``, or equal to another one except for case), or if the format lacks the type of a
    parameter; ``StorageError`` if the disk is full or not writable.

    Source of the layout: TVM's ``python/tvm/micro/model_library_format.py``.
    """
    from pathlib import Path

    from mlfbuild.archive import write_archive as write_file

    write_file(library, Path(path), version)


def load(
    archive: str | os.PathLike[str],
    model: str | None = None,
    *,
    isolated: bool = False,
    timeout: float = 60.0,
    target: str | None = None,
    file: str | os.PathLike[str] = "mlfbuild.yml",
) -> Model:
    """Return a network of ``archive``, compiled for this machine; see ``mlfbuild.verify.host.load``.

    ``archive`` may also be a ``.tflite`` or ``.onnx`` file. With ``target``, a target of the project ``file``, the
    network runs on the target's device or emulated board, which stays connected until ``Model.close``; a run of more
    than ``timeout`` seconds is an error there::

        with mlfbuild.load("kws.tar", target="nucleo") as model:
            outputs = model.run({"input_1": spectrogram})

    This executes code of the archive with the permissions of this process: load only archives that you trust, or use
    ``mlfbuild run --sandbox``.

    Raises as ``mlfbuild.verify.host.load``, and with ``target`` also as the reader of the project file and the runner
    of the target's device.
    """
    if target is not None:
        from pathlib import Path

        from mlfbuild.usecases import device_target, load_on_device

        found = device_target(Path(file), target)
        return load_on_device(Path(archive), model, found, timeout)
    from mlfbuild.verify.host import load as load_model

    return load_model(archive, model, isolated=isolated, timeout=timeout)
