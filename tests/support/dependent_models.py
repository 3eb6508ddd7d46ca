"""Models whose code calls a library that is not in their archives, and such a library: ``tiny``, two C files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from mlfbuild.dependencies.types import Dependency, Source
from mlfbuild.firmware import unpack, write_target_tree
from mlfbuild.library import ExternalDependency, Library, Module
from mlfbuild.targets import CPUS
from support.libraries import native_module

FILES: Mapping[str, bytes] = {
    "inc/tiny.h": b"#include <stdint.h>\nint8_t tiny_add(int8_t x);\n",
    # What a firmware's -Wall -Wextra -Wconversion -Werror would not let pass.
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
        y[i] = tiny_add(x[i]);
    }}
    return 0;
}}
"""


def tiny_source(offset: int = 3, **changes: object) -> Source:
    """The library: ``tiny_add`` adds ``offset``, which only the library's own options tell."""
    source = Source(
        "tiny", "v1.0", FILES, ("src/add.c", "src/offset.c"), ("inc", "src"), license="MIT",
        compile_options=("-O1", f"-DOFFSET=({offset} + 0)"),
    )  # fmt: skip
    return replace(source, **changes)  # type: ignore[arg-type]


def dependent_module(name: str) -> Module:
    """A module whose function calls ``tiny_add`` for each of its four elements, and that says what it needs."""
    module = native_module(name)
    code = _CODE.format(name=name).encode()
    files = tuple(replace(file, content=code) if file.path.suffix == ".c" else file for file in module.codegen)
    needed = ExternalDependency("tiny", "https://example.org/tiny", "git", "v1.0")
    return replace(module, codegen=files, external_dependencies=(needed,))


def write_dependent_tree(
    folder: Path, *dependencies: Dependency, models: Sequence[str] = ("one", "two"), systems: Sequence[str] = ()
) -> Path:
    """Write the folder of a target with ``models`` that all need ``tiny``, and ``dependencies``; return it."""
    for name in models:
        unpack(Library((dependent_module(name),)), folder / name, archive_id=name)
    write_target_tree(folder, models, None, CPUS["host"], systems, dependencies=dependencies)
    return folder
