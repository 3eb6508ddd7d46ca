"""Build the C of a native library with this machine's compiler, run it, and return the outputs.

For every case, the harness calls ``mlf_<model>_run`` with its own workspace and ``tvmgen_<model>_run``, and checks that
both agree, that inputs are unchanged and that nothing is written around the buffers. Buffers have only the alignment of
their type, the workspace that of its macro. A model with a state keeps it between cases, both with its own state and
with one of the harness. With ``io: arena``, inputs are written into the workspaces, and outputs are read from them.
"""

import functools
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mlfbuild.library import Library, Module

Array = npt.NDArray[Any]

WARNINGS = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-Wshadow", "-Wconversion", "-Wpedantic")
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
_TRAPS = (
    "-fsanitize=address,undefined", "-fsanitize-undefined-trap-on-error", "-fno-sanitize=null,object-size",
    "--param", "asan-instrumentation-with-call-threshold=0",
)  # fmt: skip
"""The same checks without messages, in half the compile time. Null and overrun objects are also found by addresses."""

_MAIN = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

%(includes)s

enum { GUARD = 64, PATTERN = 0x5a };

struct buffer {
  size_t size;
  unsigned char *memory; /* guard, content, guard; aligned as badly as the content may be */
  void *block;
};

static struct buffer make(size_t size, size_t alignment) {
  unsigned char *block = aligned_alloc(64, (alignment + size + 2 * GUARD + 63) / 64 * 64);
  struct buffer buffer = {size, block + alignment, block};
  memset(buffer.memory, PATTERN, size + 2 * GUARD);
  return buffer;
}

static void release(struct buffer buffer) { free(buffer.block); }

static void *content(struct buffer buffer) { return buffer.memory + GUARD; }

static void check(struct buffer buffer, const char *what) {
  for (size_t i = 0; i < GUARD; i++) {
    if (buffer.memory[i] != PATTERN || buffer.memory[GUARD + buffer.size + i] != PATTERN) {
      fprintf(stderr, "written outside %%s\n", what);
      exit(1);
    }
  }
}

static void read_all(FILE *file, void *data, size_t size) {
  if (fread(data, 1, size, file) != size) {
    fprintf(stderr, "short input\n");
    exit(1);
  }
}

%(functions)s

int main(int argc, char **argv) {
  FILE *in = fopen(argv[1], "rb"), *out = fopen(argv[2], "wb");
  if (argc != 3 || !in || !out) return 2;
%(calls)s
  return fclose(in) | fclose(out);
}
"""

_FUNCTION = r"""
static void run_%(model)s(FILE *in, FILE *out, int anew) {
%(state)s
%(workspaces)s
%(makes)s
  struct tvmgen_%(model)s_inputs inputs = {%(inputs)s};
  struct tvmgen_%(model)s_outputs outputs = {%(outputs)s};
%(reads)s
%(own)s
%(copies)s
%(static)s
%(checks)s
}
"""

_CALLS = (
    "  if (mlf_%(model)s_run(&inputs, &outputs, %(workspaces)s%(kept)s) != 0) exit(3);",
    "  if (tvmgen_%(model)s_run(&inputs, &outputs) != 0) exit(4);",
)
_CALLS_IN_POOLS = (
    """\
  struct tvmgen_%(model)s_workspace_pools pools = {%(workspaces)s};
  struct tvmgen_%(model)s_inputs places = tvmgen_%(model)s_map_inputs(&pools);
  struct tvmgen_%(model)s_outputs results = tvmgen_%(model)s_map_outputs(&pools);
%(write)s
  if (mlf_%(model)s_run(%(workspaces)s%(kept)s) != 0) exit(3);
%(read)s""",
    """\
  pools = mlf_%(model)s_static_pools();
  places = tvmgen_%(model)s_map_inputs(&pools);
  results = tvmgen_%(model)s_map_outputs(&pools);
%(write)s
  if (tvmgen_%(model)s_run(&pools) != 0) exit(4);
%(read)s""",
)
"""The runs with the workspace of the harness and with the static one; ``write`` and ``read`` copy the tensors."""


def write_tree(library: Library, folder: Path) -> Path:
    """Write the codegen files of ``library`` below ``folder`` with their paths in an archive; return ``folder``."""
    for module in library.modules:
        for file in module.codegen:
            path = folder / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists() or path.read_bytes() != file.data:  # libraries share kernels
                path.write_bytes(file.data)
    return folder


@functools.cache
def launcher() -> tuple[str, ...]:
    """Return the launcher of compilers: ccache if it is installed."""
    return ("ccache",) if shutil.which("ccache") else ()


def build(
    folder: Path, main: str, flags: Sequence[str] = (), *, together: bool = False, main_flags: Sequence[str] = ()
) -> Path:
    """Compile ``host/src/*.c`` of ``folder`` with all warnings as errors, and link them with the program ``main``.

    ``together`` compiles them as one translation unit, which is faster for many small models. The program itself is
    compiled without optimisation and sanitizers, with ``main_flags``. All paths are relative to ``folder``, so that
    ccache recognises equal files in another folder.
    """
    sources = sorted(path.relative_to(folder) for path in (folder / "host/src").glob("*.c"))
    if together:
        (folder / "all.c").write_text("".join(f'#include "{source}"\n' for source in sources))
        sources = [Path("all.c")]
    (folder / "main.c").write_text(main)
    objects = [Path(f"{source.stem}.o") for source in (*sources, Path("main.c"))]
    for source, output in zip(sources, objects, strict=False):
        run([*launcher(), "gcc", *WARNINGS, *flags, "-I", "host/include", "-c", source, "-o", output], folder)
    run([*launcher(), "gcc", "-std=c11", *main_flags, "-I", "host/include", "-c", "main.c", "-o", "main.o"], folder)
    run(["gcc", *flags, *objects, "-o", "program"], folder)
    return folder / "program"


def run(command: Sequence[object], folder: Path | None = None) -> str:
    """Run ``command`` in ``folder``, which must succeed, and return its output."""
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, f"{command[0]} exits with {done.returncode}:\n{done.stdout}"
    return done.stdout


def run_on_host(library: Library, inputs: Sequence[Array], *, sanitize: bool = True) -> list[Array]:
    """Run the only module of ``library`` once on ``inputs`` in call order, and return its outputs in call order."""
    return run_cases_on_host(library, [inputs], sanitize=sanitize)[0]


def run_cases_on_host(
    library: Library,
    cases: Sequence[Sequence[Array]],
    *,
    sanitize: bool = True,
    optimise: str = "-O0",
    anew: Collection[int] = (),
) -> list[list[Array]]:
    """Do the same for many cases in one program; before those at the indices ``anew``, the state is reset."""
    (module,) = library.modules
    jobs = [(library, module, case) for case in cases]
    return run_many_on_host(jobs, sanitize=sanitize, optimise=optimise, anew=anew)


def assert_many_on_host(
    jobs: Sequence[tuple[Library, Module, Sequence[Array]]], wanted: Sequence[Sequence[Array]]
) -> None:
    """Check that the outputs of each of ``jobs`` are exactly the ``wanted`` ones, which may have other shapes."""
    for outputs, rights in zip(run_many_on_host(jobs), wanted, strict=True):
        for output, right in zip(outputs, rights, strict=True):
            np.testing.assert_array_equal(output.reshape(right.shape), right)


def run_many_on_host(
    jobs: Sequence[tuple[Library, Module, Sequence[Array]]],
    *,
    sanitize: bool = True,
    optimise: str = "-O0",
    anew: Collection[int] = (),
) -> list[list[Array]]:
    """Run (library, module, inputs) jobs of one or more models in one program; return the outputs of each.

    GCC takes twice as long for -O1 with sanitizers, so optimised code is tested on boards and in the sweep. Sanitizers
    only stop the program at first; if they do, it is built again with their messages.

    Before the jobs at the indices ``anew``, the state of their model is reset.
    """
    modules = {module.name: module for _, module, _ in jobs}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for library in {id(library): library for library, _, _ in jobs}.values():
            write_tree(library, folder)
        main = _main(modules, [module for _, module, _ in jobs], anew)
        data = b"".join(np.ascontiguousarray(value).tobytes() for _, _, values in jobs for value in values)
        (folder / "inputs").write_bytes(data)
        for checks in (_TRAPS, SANITIZERS) if sanitize else ((),):
            program = build(folder, main, [optimise, *checks], together=len(modules) > 1)
            if subprocess.run([program, "inputs", "outputs"], cwd=folder, capture_output=True).returncode == 0:
                break
        else:
            run([program, "inputs", "outputs"], folder)
        return _split((folder / "outputs").read_bytes(), [module for _, module, _ in jobs])


def _main(modules: dict[str, Module], order: Sequence[Module], anew: Collection[int]) -> str:
    return _MAIN % {
        "includes": "\n".join(f'#include "tvmgen_{name}.h"' for name in modules),
        "functions": "\n".join(_function(module) for module in modules.values()),
        "calls": "\n".join(
            f"  for (long i = 0; i < {len(list(runs))}; i++) run_{name}(in, out, {reset:d});"
            for (name, reset), runs in groupby((module.name, at in anew) for at, module in enumerate(order))
        ),
    }


def _function(module: Module) -> str:
    makes, reads, copies, checks = [], [], [], []
    for index, info in enumerate(module.inputs):
        alignment = np.dtype(info.dtype).itemsize
        makes.append(f"  struct buffer in{index} = make({info.size}, {alignment}), kept{index} = make({info.size}, 1);")
        reads.append(f"  read_all(in, content(in{index}), {info.size});")
        reads.append(f"  memcpy(content(kept{index}), content(in{index}), {info.size});")
        checks.append(f"  if (memcmp(content(kept{index}), content(in{index}), {info.size})) exit(5);")
        checks.append(f'  check(in{index}, "input {index}");')
        checks.append(f"  release(in{index}); release(kept{index});")
    for index, info in enumerate(module.outputs):
        alignment = np.dtype(info.dtype).itemsize
        makes.append(
            f"  struct buffer out{index} = make({info.size}, {alignment}), first{index} = make({info.size}, 1);"
        )
        copies.append(f"  memcpy(content(first{index}), content(out{index}), {info.size});")
        copies.append(f"  memset(content(out{index}), PATTERN, {info.size});")
        checks.append(f"  if (memcmp(content(first{index}), content(out{index}), {info.size})) exit(6);")
        checks.append(f'  check(out{index}, "output {index}");')
        checks.append(f"  fwrite(content(out{index}), 1, {info.size}, out);")
        checks.append(f"  release(out{index}); release(first{index});")
    upper = module.name.upper()
    state = [
        "  static struct buffer state;",
        "  if (!state.block) {",
        f"    state = make(MLF_{upper}_STATE_SIZE, MLF_{upper}_STATE_ALIGNMENT);",
        f"    if (mlf_{module.name}_reset(content(state)) != 0) exit(7);",
        "  }",
        f"  if (anew && (mlf_{module.name}_reset(content(state)) || tvmgen_{module.name}_reset())) exit(8);",
    ]
    if module.state_size:
        checks.append('  check(state, "state");')
    kept = ", content(state)" if module.state_size else ""
    copied = {
        "write": [f"  memcpy(((void **)&places)[{at}], content(in{at}), {info.size});"
                  for at, info in enumerate(module.inputs)],
        "read": [f"  memcpy(content(out{at}), ((void **)&results)[{at}], {info.size});"
                 for at, info in enumerate(module.outputs)],
    }  # fmt: skip
    sizes = _workspaces(module)
    checks += [f'  check({name}, "{name}");\n  release({name});' for name in sizes]
    passed = ", ".join(f"content({name})" for name in sizes)
    words = {
        "model": module.name,
        "kept": kept,
        "workspaces": passed,
        **{key: "\n".join(lines) for key, lines in copied.items()},
    }
    own, static = (text % words for text in (_CALLS_IN_POOLS if module.workspace_io else _CALLS))
    return _FUNCTION % {
        "own": own,
        "static": static,
        "workspaces": "\n".join(
            f"  struct buffer {name} = make(TVMGEN_{upper}_{size}, MLF_{upper}_WORKSPACE_ALIGNMENT);"
            for name, size in sizes.items()
        ),
        "state": "\n".join(state if module.state_size else ["  (void)anew;"]),
        "model": module.name,
        "upper": upper,
        "makes": "\n".join(makes),
        "reads": "\n".join(reads),
        "copies": "\n".join(copies),
        "checks": "\n".join(checks),
        "inputs": ", ".join(f"content(in{index})" for index in range(len(module.inputs))),
        "outputs": ", ".join(f"content(out{index})" for index in range(len(module.outputs))),
    }


def _workspaces(module: Module) -> dict[str, str]:
    """Return the workspaces of a reentrant run, and the ends of the macros with their sizes."""
    arenas = [each.name for each in module.network.arenas] if module.network else []
    sizes = {f"{name}_workspace": f"{name.upper()}_WORKSPACE_POOL_SIZE" for name in arenas}
    return sizes or {"workspace": "WORKSPACE_SIZE"}


def _split(data: bytes, order: Sequence[Module]) -> list[list[Array]]:
    results, offset = [], 0
    for module in order:
        outputs = []
        for info in module.outputs:
            assert info.shape is not None
            piece = data[offset : offset + info.size]
            outputs.append(np.frombuffer(piece, np.dtype(info.dtype)).reshape(info.shape))
            offset += info.size
        results.append(outputs)
    assert offset == len(data)
    return results
