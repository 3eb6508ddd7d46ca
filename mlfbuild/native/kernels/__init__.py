"""Select the kernel headers that a model's code includes, as files of an archive in the folder ``mlfbuild``.

Here they are sorted by core: ``portable`` is C99 for any machine, in a folder per family of operators and one for
``numbers``, which all of them use; ``thumb`` is for cores without SIMD, ``dsp`` for those with the DSP extension,
``mve`` for Helium, ``vfp`` for scalar float32. In an archive all are in one folder, and they include each other by the
name alone. So a name is used once.

An inner product is called ``dot``, with the size of its micro-tile, rows by columns: ``dot_3x2`` keeps the sums of
three pixels (or rows of a matrix) times two output channels in registers. ``matmul`` and ``conv2d`` are whole products
and convolutions, which call it tile by tile.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path, PurePosixPath

from mlfbuild.core import sha256
from mlfbuild.library import KERNEL_FOLDER, CodegenFile, reached_headers

_HERE = Path(__file__).parent


@cache
def kernel_headers() -> dict[str, bytes]:
    """Return all kernel headers by file name, in alphabetical order.

    The bytes are read once in a process. Names are unique although the headers are in several folders here, because
    archives have all of them in one.
    """
    return {path.name: path.read_bytes() for path in sorted(_HERE.rglob("*.h"), key=lambda path: path.name)}


@cache
def kernel_files(names: tuple[str, ...]) -> tuple[CodegenFile, ...]:
    """Return the kernel headers ``names`` and all headers that they include, as files of an archive.

    ``names`` are file names without a folder. Paths in the archive are ``host/src/mlfbuild/<name>``, in alphabetical
    order of the names.
    """
    folder = PurePosixPath("host/src", KERNEL_FOLDER)
    return tuple(CodegenFile(folder / name, data) for name, data in reached_headers(names, kernel_headers()).items())


def kernels_sha256(names: tuple[str, ...]) -> str:
    """Return the hash of ``kernel_files(names)``.

    The source that includes the headers contains it, so the source changes if any of them does. Builds rely on that:
    they watch the source, whose name is known before the model is compiled, instead of the headers.
    """
    content = (f"{file.path.name} {len(file.data)}\n".encode() + file.data for file in kernel_files(names))
    return sha256(b"".join(content))


def include_lines(names: Iterable[str]) -> list[str]:
    """Return the directives that include the kernel headers ``names``."""
    return [f'#include "{KERNEL_FOLDER}/{name}"' for name in names]
