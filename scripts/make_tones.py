"""Write the example of `mlfbuild init`: a network that recognises which of four tones a window of sound contains.

    pip install -e '.[test]'             # in the repository's root: tflite-micro
    python scripts/make_tones.py

The network is not trained; formulas define all of its weights. The first layer multiplies the window by each tone in
four phases, a quarter of a period apart, and sets negative results to 0; the second adds the four results, so that the
phase of the sound does not matter; SOFTMAX computes probabilities. The script writes ``tones.tflite`` and
``tones.npz``, four windows with the answers of TensorFlow Lite Micro, into ``mlfbuild/templates/example``.
"""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

import numpy as np
import numpy.typing as npt

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "examples"))

from training.judge import tflite_micro

from mlfbuild.datasets import FileOperator as Operator, FileTensor as Tensor, NetworkFile as Model, write_tflite
from mlfbuild.library import CompileRequest
from mlfbuild.native import read_network
from mlfbuild.targets import CPUS
from mlfbuild.verify import VectorsOrigin, vectors_file

FOLDER = ROOT / "mlfbuild" / "templates" / "example"
SAMPLES = 32
PERIODS = (2, 4, 6, 9)  # of each tone in a window: integers, so that the tones are orthogonal
PHASES = 4
WEIGHT_SCALE = 1 / 127
INPUT_SCALE = 1 / 128
HIDDEN_SCALE = SAMPLES / 2 / 255  # a tone of full amplitude in phase gives SAMPLES / 2
SCORE_SCALE = 0.1

Array = npt.NDArray[np.float64]


def wave(periods: int, phase: float) -> Array:
    """Return a tone of amplitude 1 that starts at ``phase``, in periods."""
    return np.cos(2 * np.pi * (periods * np.arange(SAMPLES) / SAMPLES + phase))


def model() -> bytes:
    """Return the network as the bytes of a .tflite file."""
    count = len(PERIODS)
    filters = np.array([wave(periods, phase / PHASES) for periods in PERIODS for phase in range(PHASES)])
    sums = np.kron(np.eye(count), np.ones(PHASES))
    hidden = count * PHASES
    tensors = (
        Tensor("samples", "int8", (1, SAMPLES), scale=(INPUT_SCALE,)),
        _weights("filters", filters),
        _bias("filters_bias", hidden, INPUT_SCALE),
        Tensor("strengths", "int8", (1, hidden), scale=(HIDDEN_SCALE,), zero_point=-128),
        _weights("sums", sums),
        _bias("sums_bias", count, HIDDEN_SCALE),
        Tensor("scores", "int8", (1, count), scale=(SCORE_SCALE,), zero_point=-128),
        Tensor("probabilities", "int8", (1, count), scale=(1 / 256,), zero_point=-128),
    )
    dense = "FullyConnectedOptions"
    operators = (
        Operator(
            "FULLY_CONNECTED", ("samples", "filters", "filters_bias"), ("strengths",), dense,
            {"FusedActivationFunction": 1},
        ),
        Operator("FULLY_CONNECTED", ("strengths", "sums", "sums_bias"), ("scores",), dense),
        Operator("SOFTMAX", ("scores",), ("probabilities",), "SoftmaxOptions", {"Beta": 1.0}),
    )  # fmt: skip
    return write_tflite(Model("which of four tones", tensors, operators, "samples", "probabilities"))


def _weights(name: str, values: Array) -> Tensor:
    data = np.round(values / WEIGHT_SCALE).astype(np.int8)
    return Tensor(name, "int8", data.shape, data, (WEIGHT_SCALE,))


def _bias(name: str, count: int, scale: float) -> Tensor:
    return Tensor(name, "int32", (count,), np.zeros(count, np.int32), (scale * WEIGHT_SCALE,))


def windows() -> npt.NDArray[np.int8]:
    """Return a window of each tone, int8 [4, 1, 32]: with different phases and less than full amplitude."""
    sound = np.stack([0.8 * wave(periods, 0.07 + 0.21 * index) for index, periods in enumerate(PERIODS)])
    return np.round(sound / INPUT_SCALE).astype(np.int8)[:, np.newaxis]


def vectors(path: Path) -> bytes:
    """Return the vectors file for the network at ``path``, with its origin, so that `mlfbuild vectors` renews it."""
    inputs = windows()
    outputs = tflite_micro(path.read_bytes(), inputs)
    _, identity = read_network(CompileRequest("tones", path, CPUS["host"]))
    judge = f"TensorFlow Lite Micro {metadata.version('tflite-micro')}"
    return vectors_file([inputs], [outputs], VectorsOrigin(judge, checked=True, seed=None, model=identity))


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "tones.tflite").write_bytes(model())
    (FOLDER / "tones.npz").write_bytes(vectors(FOLDER / "tones.tflite"))
