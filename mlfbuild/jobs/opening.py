"""Open an archive, or a model file as the archive that is compiled from it.

Verbs that read an archive also accept a model file: they work on the library that the native compiler makes of it,
without a file in between.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from mlfbuild.archive import open_archive
from mlfbuild.archive.tar import looks_like_archive
from mlfbuild.compilers import compiler_called, exported_cpu
from mlfbuild.core import InputFileError, MlfError, Trust, UsageError, listed, quoted, suggestion
from mlfbuild.jobs.project_jobs import default_name
from mlfbuild.library import CompileRequest, Library
from mlfbuild.project import SOURCES, source_suffix
from mlfbuild.targets import CPUS


def is_model(path: Path) -> bool:
    """Return whether ``path`` has the suffix of a model file and not the content of an archive, or is a TFLite file.

    The file need not exist: the suffix decides then. No error is raised for a file that cannot be read.
    """
    # The suffix decides for models, and the content for archives: an archive may have been saved as `kws.tflite`.
    if SOURCES.get(source_suffix(path.name)) == "native":
        return not looks_like_archive(path)
    try:
        if path.is_fifo():  # opening it as an archive refuses it, instead of waiting for a writer
            return False
        with path.open("rb") as file:
            # The file identifier of FlatBuffers follows the offset of the root table; TFLite's is TFL3.
            return file.read(8)[4:] == b"TFL3"
    except OSError:  # opening it as an archive reports the reason
        return False


def open_model(path: Path, cpu: str = "host", *, name: str = "", trace: bool = False) -> Library:
    """Return the library in the archive ``path``; if it is a model file, compile it for ``cpu``, a name in ``CPUS``.

    ``name`` is the compiled model's name in C, by default that of the file. With ``trace``, its code exposes
    intermediate tensors. Both have no effect on an archive, and neither has ``cpu``. Nothing is written. Raises as
    ``open_if_archive``, and as the native compiler.
    """
    if not is_model(path):
        return open_if_archive(path)
    options = {"trace": True} if trace else {}
    request = CompileRequest(name or default_name(path), path, CPUS[cpu], options=options)
    return compiler_called("native").compile(request)


def open_if_archive(path: Path, trust: Trust | None = None) -> Library:
    """Open ``path``, which ``is_model`` did not take for a model, as ``open_archive`` does.

    For commands that accept both: the error about a file of another kind is that of ``kinds_named``.
    """
    try:
        return open_archive(path, trust)
    except InputFileError as error:
        raise kinds_named(error, path) from None


def kinds_named(error: MlfError, path: Path) -> MlfError:
    """Return the error of opening ``path`` as an archive, or one that names all kinds if it has the name of none."""
    if error.code != "archive-not-tar" or source_suffix(path.name) in SOURCES:
        return error
    reason, hint = "is not a .tflite, .onnx or archive file", "name a file of one of these kinds"
    return InputFileError("unsupported-model-file", place=path, reason=reason, hint=hint)


def chosen_modules(library: Library, names: Collection[str], path: Path) -> Library:
    """Return ``library``, the content of ``path``, with only the modules ``names``, or with all if there are no names.

    Raises ``UsageError`` for a module that it does not have.
    """
    known = [module.name for module in library.modules]
    for name in names:
        if name not in known:
            nearest = suggestion(name, known) or f" (it has {listed(known)})"
            raise UsageError(
                "unknown-module",
                place=path,
                reason=f"the archive has no module {quoted(name)}{nearest}",
                hint="correct --model",
            )
    if not names:
        return library
    return replace(library, modules=tuple(module for module in library.modules if module.name in names))


def open_beside(path: Path, other: Library, *, trace: bool = False) -> Library:
    """Open ``path`` as ``open_model`` does, for a comparison with ``other``.

    A model file is compiled for the CPU of ``other`` and gets the name of its only module, so that differences are
    those of the networks.
    """
    # A module of another tool may have a name that a model cannot have: the name of the file is used then.
    names = [module.name for module in other.modules]
    name = names[0] if len(names) == 1 and default_name(Path(names[0])) == names[0] else ""
    return open_model(path, exported_cpu(other) or "host", name=name, trace=trace)
