"""Train the float network that the build in this folder quantises, and write its data.

    pip install -e '.[test]'                             # in the repository's root: tflite-micro
    python examples/keyword/quantized/train_windows.py   # a minute

The SVDF layers of `words` keep a state, which ai-edge-quantizer does not support. This network reads the same features
as a window of 640 ms instead. It reports the same words, in the hops after their end in which `words` is trained to.

Writes ``models/words.tflite`` in float32 and ``data/streams.npz``: features and labels of streams of speakers that
training did not hear, the first ones for the calibration.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # products are small: threads would wait for each other

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "data"), str(HERE.parent), str(HERE.parents[1])]

from cases import CALIBRATION, HOPS, chosen, real, windows
from train import CHANNELS, SEED, SETTINGS, WORDS, draw, features_of, labels_of
from training.layers import Array, Conv, Dense, DepthwiseConv, MaxPool
from training.network import Network, train
from training.quantize import float_model

from mlfbuild.datasets import front_end, write_tflite

STREAMS, HELD_BACK = 120, CALIBRATION + 10
MINIMUM_ACCURACY = 0.93


def make_network(random: np.random.Generator) -> Network:
    """Return an untrained network: 32 hops x 40 features -> 5 scores, about three thousand weights."""
    return Network(
        (
            MaxPool("coarse"),
            Conv("conv", random, inputs=1, outputs=12, size=3),
            MaxPool("pool"),
            DepthwiseConv("depthwise", random, channels=12, size=3),
            Conv("pointwise", random, inputs=12, outputs=24, size=1),
            MaxPool("last"),
            Dense("scores", random, inputs=HOPS // 8 * CHANNELS // 8 * 24, outputs=len(WORDS) + 1, relu=False),
        )
    )


def main() -> None:
    random = np.random.default_rng(SEED)
    frontend = front_end(SETTINGS)
    drawn = [draw(random) for _ in range(STREAMS + HELD_BACK)]
    features = np.stack([features_of(frontend, samples) for samples, _ in drawn])
    labels = np.stack([labels_of(spoken) for _, spoken in drawn]).astype(np.int8)

    inputs, wanted = _cases(features[:STREAMS], labels[:STREAMS])
    network = make_network(random)
    train(network, inputs, wanted, random=random, epochs=15, rate=3e-3, decay=1e-3)
    seen, held_back = (network.accuracy(*_cases(features[part], labels[part]))
                       for part in (slice(STREAMS), slice(STREAMS + CALIBRATION, None)))  # fmt: skip
    model = write_tflite(float_model(network, inputs, description="words", names=("features", "probabilities")))
    print(f"float32  training {seen:.2%}  test {held_back:.2%}  ({len(model)} bytes)")
    if held_back < MINIMUM_ACCURACY:
        sys.exit(f"less than {MINIMUM_ACCURACY:.0%}: nothing written")
    (HERE / "models/words.tflite").write_bytes(model)
    np.savez_compressed(HERE / "data/streams.npz", features=features[STREAMS:], labels=labels[STREAMS:])


def _cases(features: np.ndarray, labels: np.ndarray) -> tuple[Array, np.ndarray]:
    found = [(window, label) for stream, own in zip(features, labels, strict=True) for window, label in
             chosen(windows(stream), own)]  # fmt: skip
    return real(np.stack([window for window, _ in found])), np.array([label for _, label in found])


if __name__ == "__main__":
    main()
