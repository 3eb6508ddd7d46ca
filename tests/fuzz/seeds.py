"""The sound files that campaigns damage."""

import functools
import os
import tempfile
from pathlib import Path

import numpy as np

from mlfbuild.archive import archive_files, tar
from mlfbuild.core import find_tool
from mlfbuild.jobs.tree import SYMBOL, Subject
from mlfbuild.library import TensorInfo
from support.classical_networks import CLASSICAL
from support.foreign_archives import linked_archive, operators_archive
from support.hybrid_networks import KINDS, hybrid
from support.libraries import graph_library, native_library
from support.linked_image import linked_image
from support.networks import OPERATORS_AND_TYPES, drawn
from support.old_archives import model_archive, operator_archive, sketch_archive
from support.onnx_networks import EXPORTED, quantized_network
from support.random_graphs import random_case
from support.sound_archives import tiny_module, with_bundle
from support.unsigned_networks import OWN, own, unsigned

LARGEST_SEED = 120_000  # bytes; what is learnt of larger ones does not pay for the time

SHARED = Path(os.environ.get("MLFBUILD_SHARED", Path(__file__).parents[3] / "shared"))
"""Test data beside the repository, which adds real networks and TVM's archives if it is there."""


def few_models() -> list[bytes]:
    return [random_case(seed, 12).model for seed in range(16)]


@functools.cache
def sound_models() -> list[bytes]:
    """Networks of each operator and type alone, also of uint8 and hybrid layers, of many, and small real ones."""
    cases = {(operator, dtype): drawn(operator, dtype, 2) for operator, dtype in OPERATORS_AND_TYPES}
    random = np.random.default_rng(8)
    judged_by_litert = [
        *(unsigned(first, random) for (_, dtype), (first, *_) in cases.items() if dtype == "int8"),
        *(case for kind in OWN for case in own(kind, 1)),
        *(case for kind in KINDS for case in hybrid(kind, 2)),
    ]
    single = [case.model for case in (*(case for found in cases.values() for case in found), *judged_by_litert)]
    real = [SHARED / "models" / f"{name}.tflite" for name in ("ic_int8", "kws_int8")]
    return [*single, *few_models(), *(path.read_bytes() for path in real if path.exists())]


@functools.cache
def sound_onnx() -> list[bytes]:
    return [*(make() for make in (*EXPORTED.values(), *CLASSICAL.values())), quantized_network().bytes()]


@functools.cache
def sound_archives() -> list[dict[str, bytes]]:
    """Files of our archives, of TVM's, and of those of versions that no release wrote."""
    own = [archive_files(library) for library in (native_library(), native_library("a", "b"), graph_library())]
    paths = sorted((SHARED / "archives").glob("*.tar"))
    files = [dict(tar.members(path.open("rb"), path.name)) for path in paths]
    old = [model_archive(version, executor) for version in range(1, 7) for executor in ("graph", "aot")]
    old += [operator_archive(version) for version in (4, 5, 6, 7)] + [sketch_archive()]
    old += [linked_archive(), operators_archive(), with_bundle(tiny_module())]
    plain = [{name: bytes(content) for name, content in each.items()} for each in (*own, *files, *old)]
    return [each for each in plain if sum(map(len, each.values())) < LARGEST_SEED]


SUBJECT = Subject(
    "alpha",
    "mps2-an386",
    (TensorInfo("samples", "int8", 6, (1, 2, 3)), TensorInfo("gain", "float32", 4, (1,))),
    (TensorInfo("scores", "float32", 8),),
    64,
    16,
    takes_workspace=True,
)
"""The description of a model in the sound image and bundle, and of the arrays in the sound vectors."""


@functools.cache
def sound_image() -> tuple[bytes, bytes]:
    """An ELF image with two models, which describes itself as test firmware does, and its linker map."""
    constants = {SYMBOL: SUBJECT.to_json(), "mlf_alpha_model_id": f"mlf:alpha:{'0a' * 32}:0.1.0"}
    with tempfile.TemporaryDirectory(prefix="fuzz-image-") as folder:
        image = linked_image(Path(folder), str(find_tool("arm-none-eabi-gcc")), constants)
        return image.read_bytes(), image.with_name(f"{image.name}.map").read_bytes()
