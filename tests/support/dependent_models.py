"""Models whose code calls a library outside their archives, and that library, ``tiny``, of two C files."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from mlfbuild.archive import pack_archive
from mlfbuild.jobs.tree import unpack, write_target_tree
from mlfbuild.library import ExternalDependency, Library, Module, ResolvedLibrary
from mlfbuild.targets import CPUS
from support.libraries import native_module

FILES: Mapping[str, bytes] = {
    "inc/tiny.h": b"#include <stdint.h>\nint8_t tiny_add(int8_t x);\n",
    # Fails with a firmware's -Wall -Wextra -Wconversion -Werror.
    "src/add.c": b"#include <tiny.h>\n#include <own.h>\n"
    b"int8_t tiny_add(int8_t x) { unsigned unused = -1; return x + tiny_offset(); }\n",
    "src/offset.c": b"#include <own.h>\nint tiny_offset(void) { return OFFSET; }\n",
    "src/own.h": b"int tiny_offset(void);\n",
}
_CODE = """\
#include <tiny.h>
#include "tvmgen_{name}.h"

int32_t tvmgen_{name}_run(struct tvmgen_{name}_inputs *inputs, struct tvmgen_{name}_outputs *outputs)
{{
    const int8_t *x = inputs->x;
    int8_t *y = outputs->y;
    for (int i = 0; i < 4; ++i) {{
        y[i] = {function}(x[i]);
    }}
    return 0;
}}
"""


def tiny_source(offset: int = 3, **changes: object) -> ResolvedLibrary:
    """Return the library; ``tiny_add`` adds ``offset``, which is set by the library's compiler options."""
    source = ResolvedLibrary(
        "tiny", "v1.0", FILES, ("src/add.c", "src/offset.c"), ("inc", "src"), license="MIT",
        compile_options=("-O1", f"-DOFFSET=({offset} + 0)"),
    )  # fmt: skip
    return replace(source, **changes)  # type: ignore[arg-type]


def dependent_module(name: str, function: str = "tiny_add") -> Module:
    """Return a module that calls ``function`` of the library for each of four elements, with its requirement."""
    module = native_module(name)
    code = _CODE.format(name=name, function=function).encode()
    files = tuple(replace(file, content=code) if file.path.suffix == ".c" else file for file in module.codegen)
    needed = ExternalDependency("tiny", "https://example.org/tiny", "git", "v1.0")
    return replace(module, codegen=files, external_dependencies=(needed,))


def write_dependent_tree(
    folder: Path, *dependencies: ResolvedLibrary, models: Sequence[str] = ("one", "two"), systems: Sequence[str] = ()
) -> Path:
    """Write the folder of a target with ``models`` that all require ``tiny``, and ``dependencies``; return it."""
    for name in models:
        unpack(Library((dependent_module(name),)), folder / name, archive_id=name)
    write_target_tree(folder, models, None, CPUS["host"], systems, dependencies=dependencies)
    return folder


# A firmware repo -----------------------------------------------------------------------------------------------------

_LIBRARY = {
    "src/tiny.h": "#include <stdint.h>\nint8_t tiny_add(int8_t x);\nint8_t tiny_twice(int8_t x);\n",
    "src/own.h": "int tiny_offset(void);\n",
    "src/add.c": '#include "tiny.h"\n#include "own.h"\nint8_t tiny_add(int8_t x) { return x + tiny_offset(); }\n',
    "src/offset.c": '#include "own.h"\nint tiny_offset(void) { return 3; }\n',
    "src/twice.c": '#include "tiny.h"\nint8_t tiny_twice(int8_t x) { return 2 * x; }\n',
    "LICENSE": "MIT\n",
}
_PROJECT = """\
mlfbuild: 1
targets:
  pc: {cpu: host}
models:
  one: {source: models/one.tar}
  two: {source: models/two.tar}
dependencies:
  tiny: {path: ../tiny, version: v1.0, sources: [src/**/*.c], include-dirs: [src], compile-options: [-O1]}
"""
EXPORTED = '{source: models/one.tar, compiler: command, command: "cp {source} {output}"}'
"""Replaces ``{source: models/one.tar}`` by a program, so that the archive is not known before the build."""
MAIN = """\
#include <stdio.h>
#include "tvmgen_one.h"
#include "tvmgen_two.h"

int main(void)
{
    int8_t x[4] = {1, 2, 3, 4}, y[4], z[4];
    struct tvmgen_one_inputs in_one = {x};
    struct tvmgen_one_outputs out_one = {y};
    struct tvmgen_two_inputs in_two = {x};
    struct tvmgen_two_outputs out_two = {z};
    tvmgen_one_run(&in_one, &out_one);
    tvmgen_two_run(&in_two, &out_two);
    printf("%d %d\\n", y[3], z[3]);
    return 0;
}
"""


def write_model(root: Path, name: str, function: str = "tiny_add") -> None:
    """Write the archive of a model that calls ``function`` into the repo ``root``."""
    write_file(root / f"models/{name}.tar", pack_archive(Library((dependent_module(name, function),))))


def write_repo(root: Path) -> Path:
    """Write a repo of two models that require a library in the parent of ``root``; return the library's folder.

    Unchanged files keep their time; other files in the library's folder are removed.
    """
    library = root.parent / "tiny"
    for path in library.rglob("*") if library.is_dir() else ():
        if path.is_file() and path.relative_to(library).as_posix() not in _LIBRARY:
            path.unlink()
    for path, text in _LIBRARY.items():
        write_file(library / path, text.encode())
    write_file(root / "mlfbuild.yml", _PROJECT.encode())
    write_file(root / "main.c", MAIN.encode())
    for name in ("one", "two"):
        write_model(root, name)
    return library


def write_file(path: Path, data: bytes) -> None:
    """Write ``data`` unless ``path`` has that content."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_file() or path.read_bytes() != data:
        path.write_bytes(data)
