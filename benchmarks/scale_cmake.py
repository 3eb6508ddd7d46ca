"""Print what CMake needs for many models: 200 small networks for one target, beside as many C files without mlfbuild.

    python benchmarks/scale_cmake.py [--models N] [--jobs N] [--runs N] [--generator NAME]... [--folder DIR]

One program of this machine is linked from a library a model. Bare CMake compiles copies of the same C files into the
same libraries. Times are of the whole process, seconds; of what can be repeated the best of the runs.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from scale import network
from whole_process import mlfbuild

OURS = """\
cmake_minimum_required(VERSION 3.22)
project(app LANGUAGES C)
find_package(mlfbuild CONFIG REQUIRED)
mlfbuild_models(mlfbuild.yml TARGET pc)
add_executable(app main.c)
target_link_libraries(app PRIVATE mlf::models)
"""
BARE = """\
cmake_minimum_required(VERSION 3.22)
project(app LANGUAGES C)
add_executable(app main.c)
foreach(name IN ITEMS {names})
  file(GLOB sources ${{CMAKE_SOURCE_DIR}}/trees/${{name}}/codegen/host/src/*.c)
  add_library(${{name}} STATIC ${{sources}})
  target_include_directories(${{name}} PUBLIC trees/${{name}}/codegen/host/include)
  target_link_libraries(app PRIVATE ${{name}})
endforeach()
"""


@dataclass(frozen=True)
class Repo:
    """A project and one of CMake's generators."""

    folder: Path
    generator: str
    jobs: int

    @property
    def build_dir(self) -> Path:
        return self.folder / self.generator.split()[-1].lower()

    def configure(self) -> float:
        package = subprocess.run([mlfbuild(), "cmake-dir"], capture_output=True, text=True, check=True).stdout.strip()
        return seconds(
            ["cmake", "-S", self.folder, "-B", self.build_dir, "-G", self.generator, "-Wno-dev", "--no-warn-unused-cli",
             f"-Dmlfbuild_DIR={package}", f"-DMLFBUILD_COMMAND={mlfbuild()}"],
        )  # fmt: skip

    def build(self) -> float:
        return seconds(["cmake", "--build", self.build_dir, f"-j{self.jobs}"])

    def forget(self) -> None:
        """Remove all that CMake knows, as `cmake --fresh` does."""
        (self.build_dir / "CMakeCache.txt").unlink()
        shutil.rmtree(self.build_dir / "CMakeFiles")


def seconds(command: list[str | Path]) -> float:
    """Run ``command``; return its wall time; stops the benchmark where it fails."""
    begin = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: failed\n{done.stdout[-3000:]}")
    return time.perf_counter() - begin


def write_project(folder: Path, names: list[str]) -> None:
    """Write models, project file and a program that runs each model."""
    (folder / "models").mkdir(parents=True)
    for seed, name in enumerate(names):
        (folder / f"models/{name}.tflite").write_bytes(network(seed))
    models = "".join(f"  {name}: {{source: models/{name}.tflite}}\n" for name in names)
    (folder / "mlfbuild.yml").write_text(f"mlfbuild: 1\ntargets:\n  pc: {{cpu: host}}\nmodels:\n{models}")
    (folder / "CMakeLists.txt").write_text(OURS)
    includes = "".join(f'#include "tvmgen_{name}.h"\n' for name in names)
    calls = "".join(f"  status += tvmgen_{name}_run(0, 0);\n" for name in names)
    (folder / "main.c").write_text(f"{includes}\nint main(void) {{\n  int status = 0;\n{calls}  return status;\n}}\n")


def write_bare(folder: Path, built: Path, names: list[str]) -> None:
    """Copy the generated files into ``built``, and write the CMakeLists.txt of a user who committed them."""
    folder.mkdir()
    shutil.copytree(built / "mlf/pc", folder / "trees")
    shutil.copy(built.parent / "main.c", folder)
    (folder / "CMakeLists.txt").write_text(BARE.format(names=" ".join(names)))


def row(name: str, ours: float, bare: float | None = None) -> None:
    print(f"  {name:36} {ours:8.2f}" + (f" {bare:8.2f} {ours / bare:8.1f}" if bare else ""), flush=True)


def measure(ours: Repo, bare: Repo, names: list[str], runs: int) -> None:
    """Print one generator's table."""
    print(f"{ours.generator}, {len(names)} models, -j{ours.jobs}{'':10} mlfbuild     bare    ratio")
    configured, built = ours.configure(), ours.build()
    if not bare.folder.exists():
        write_bare(bare.folder, ours.build_dir, names)
    row("configure, nothing there", configured, bare.configure())
    row("cold build", built, bare.build())
    ours.build()  # the first one after it notes the times of files that it watches
    row("null build", *(min(repo.build() for _ in range(runs)) for repo in (ours, bare)))
    for repo in (ours, bare):
        repo.forget()
    row("configure anew", ours.configure(), bare.configure())
    row("build after that", ours.build(), bare.build())
    ours.build()
    touched = []
    for repo in (ours, bare):
        (repo.folder / "CMakeLists.txt").touch()
        touched.append(repo.build())
    row("CMakeLists.txt touched", *touched)
    model = ours.folder / f"models/{names[0]}.tflite"
    model.touch()
    row("one model touched", ours.build())
    model.write_bytes(network(len(names)))
    (bare.folder / f"trees/{names[0]}/codegen/host/src/{names[0]}_lib0.c").touch()
    row("one model, or its C file, changed", ours.build(), bare.build())
    model.write_bytes(network(0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--runs", type=int, default=3, help="of each null build")
    parser.add_argument("--generator", action="append", help="default: Ninja and Unix Makefiles")
    parser.add_argument("--folder", type=Path, help="keep the projects here, which must be empty")
    options = parser.parse_args()
    names = [f"net{index:03}" for index in range(options.models)]
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        write_project(folder / "project", names)
        for generator in options.generator or ["Ninja", "Unix Makefiles"]:
            ours, bare = (Repo(folder / name, generator, options.jobs) for name in ("project", "bare"))
            measure(ours, bare, names, options.runs)


if __name__ == "__main__":
    main()
