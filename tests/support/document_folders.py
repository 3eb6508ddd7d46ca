"""Create the folders in which the blocks of pages run; docs/blocks.yml selects one by ``project: NAME``."""

import shutil
from collections.abc import Callable
from pathlib import Path

from support.documents import REPOSITORY
from support.exporters import python_with_tvm

_FIRMWARE = """\
mlfbuild: 1
targets:
  m4: {cpu: cortex-m4, board: mps2-an386}
  m33: {cpu: cortex-m33, board: mps2-an505}
  m55: {cpu: cortex-m55, board: mps3-an547}
models:
  kws: {source: kws.tflite, vectors: kws.npz}
  digits: {source: models/digits.tflite, vectors: tests/digits.npz}
firmware:
  app: {sources: [src/main.c]}
"""
_MAIN = "int main(void) { return 0; }\n"
_CALLS_KWS = """\
#include "tvmgen_kws.h"
int main(void)
{
    static int8_t in[TVMGEN_KWS_INPUT_1_SIZE], out[TVMGEN_KWS_IDENTITY_SIZE];
    struct tvmgen_kws_inputs inputs = {in};
    struct tvmgen_kws_outputs outputs = {out};
    return tvmgen_kws_run(&inputs, &outputs);
}
"""
_PLACED = """\
mlfbuild: 1
targets:
  m4: {cpu: cortex-m4, board: mps2-an386, regions: {.mlf_params: PSRAM}}
models:
  kws: {source: kws.tflite, placement: {params: .mlf_params}}
firmware:
  app: {sources: [src/main.c]}
"""
_WAKE = """\
#include <stdint.h>
#define TVMGEN_WAKE_FRAME_SIZE 16
#define TVMGEN_WAKE_SCORES_SIZE 4
#define MLF_WAKE_STATE_SIZE 480
#define MLF_WAKE_STATE_ALIGNMENT 8
enum { WORD = 1, THRESHOLD = 100 };
struct tvmgen_wake_inputs { void* frame; };
struct tvmgen_wake_outputs { void* scores; };
int32_t tvmgen_wake_run(struct tvmgen_wake_inputs* inputs, struct tvmgen_wake_outputs* outputs);
int32_t tvmgen_wake_reset(void);
int32_t mlf_wake_reset(void* kept);
int32_t mlf_wake_run(const struct tvmgen_wake_inputs* inputs, const struct tvmgen_wake_outputs* outputs,
                     void* workspace, void* kept);
void wake(void);
"""


def empty(_folder: Path, _shared: Callable[[], Path]) -> None:
    """Leave the folder empty."""


def digits(folder: Path, _shared: Callable[[], Path]) -> None:
    """Copy the example of README.md, without files of a build."""
    left = shutil.ignore_patterns("build", ".sconsign.dblite", "__pycache__")
    shutil.copytree(REPOSITORY / "examples/digits", folder, ignore=left, dirs_exist_ok=True)


def checkout(folder: Path, _shared: Callable[[], Path]) -> None:
    """Copy the parts of the repository that the commands of README.md use."""
    digits(folder / "examples/digits", _shared)


def tutorial(folder: Path, _shared: Callable[[], Path]) -> None:
    """Make a checkout of mlfbuild with the files that the tutorial copies."""
    digits(folder / "mlfbuild/examples/digits", _shared)


def firmware(folder: Path, shared: Callable[[], Path]) -> None:
    """Make a firmware repository with two models, kws and digits, and the targets m4, m33 and m55."""
    digits(folder, shared)
    kws(folder, shared)
    (folder / "CMakeLists.txt").unlink()
    (folder / "mlfbuild.yml").write_text(_FIRMWARE)
    (folder / "src/main.c").write_text(_MAIN)


def wake(folder: Path, _shared: Callable[[], Path]) -> None:
    """Write the header of a streaming network, as in docs/c-interface.md, with the firmware's own declarations."""
    (folder / "include").mkdir()
    (folder / "include/tvmgen_wake.h").write_text(_WAKE)


def placed(folder: Path, shared: Callable[[], Path]) -> None:
    """Make a firmware repository whose model kws has its constants in external memory."""
    kws(folder, shared)
    (folder / "src").mkdir()
    (folder / "src/main.c").write_text(_CALLS_KWS)
    (folder / "mlfbuild.yml").write_text(_PLACED)


def tvm(folder: Path, shared: Callable[[], Path]) -> None:
    """Copy the model kws, and make a Python with a stand-in for TVM, for docs/other-compilers.md."""
    kws(folder, shared)
    python_with_tvm(folder / ".venv-tvm/bin/python", "0.14.0")


def kws(folder: Path, shared: Callable[[], Path]) -> None:
    """Copy a keyword-spotting model of MLPerf Tiny, kws.tflite, and kws.npz with eight cases."""
    data = shared()
    shutil.copyfile(data / "models/kws_int8.tflite", folder / "kws.tflite")
    shutil.copyfile(data / "golden/kws_int8.npz", folder / "kws.npz")


def archives(folder: Path, shared: Callable[[], Path]) -> None:
    """Copy the archives that TVM exported, with their names in ../shared/archives."""
    for path in (shared() / "archives").glob("*.*"):
        shutil.copyfile(path, folder / path.name)


_MAKERS = (empty, digits, checkout, tutorial, firmware, kws, placed, tvm, wake, archives)
FOLDERS = {maker.__name__: maker for maker in _MAKERS}
"""The functions that make a folder, by the value of ``project``."""
