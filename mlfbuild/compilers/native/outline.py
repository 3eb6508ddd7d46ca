"""Which files the compiler makes of a model: known from its name alone, so that builds can be configured without it."""

from __future__ import annotations

from functools import cache
from pathlib import PurePosixPath

from mlfbuild.compilers.native.kernel_files import kernel_folder, kernel_headers
from mlfbuild.library.types import CodegenFile, Library, Module


def source_path(name: str) -> PurePosixPath:
    """Return the path of the C file of the model ``name`` below ``codegen/``."""
    return PurePosixPath(f"host/src/{name}_lib0.c")


def header_path(name: str) -> PurePosixPath:
    """Return the path of the header of the model ``name`` below ``codegen/``."""
    return PurePosixPath(f"host/include/tvmgen_{name}.h")


@cache
def kernel_files() -> tuple[CodegenFile, ...]:
    """Return the kernel headers as every archive has them: all, whatever the model uses of them."""
    folder = PurePosixPath("host/include") / kernel_folder()
    return tuple(CodegenFile(folder / name, data) for name, data in kernel_headers().items())


def outline_library(name: str) -> Library:
    """Return a library with the names of the compiled model's: what depends on the model itself is empty."""
    files = tuple(CodegenFile(path, b"") for path in (source_path(name), header_path(name)))
    module = Module(
        name=name,
        executor="aot",
        targets=(),
        main=(),
        operator_functions=(),
        codegen=(*files, *kernel_files()),
        source_text=b"-",  # of no text there is no file
    )
    return Library((module,))
