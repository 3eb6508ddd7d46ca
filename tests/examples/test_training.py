"""What the training scripts stand on (gradients, quantisation, the .tflite writer), and the files they left."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
sys.path.insert(0, str(EXAMPLES))

from training.judge import tflite_micro
from training.layers import Conv, Dense, DepthwiseConv, Layer, MaxPool, Svdf
from training.network import Network, softmax, train
from training.quantize import Range, float_model, int8_model

from mlfbuild.datasets import write_tflite

NAMES = ("image", "probabilities")


@pytest.mark.parametrize("kind", ["conv", "depthwise", "pool", "dense", "svdf"])
def test_gradients_are_those_of_finite_differences(kind: str) -> None:
    random = np.random.default_rng(7)
    inputs = random.normal(size=(10, 3) if kind == "svdf" else (2, 4, 4, 3))
    layer: Layer = {
        "conv": lambda: Conv(kind, random, inputs=3, outputs=2, size=3),
        "depthwise": lambda: DepthwiseConv(kind, random, channels=3, size=3),
        "pool": lambda: MaxPool(kind),
        "dense": lambda: Dense(kind, random, inputs=48, outputs=4, relu=True),
        "svdf": lambda: Svdf(kind, random, inputs=3, units=4, memory=3, hops=5),
    }[kind]()
    layer.parameters = [random.normal(size=value.shape) for value in layer.parameters]
    direction = random.normal(size=layer.forward(inputs).shape)
    by_input = layer.backward(direction)
    variables = [(inputs, by_input), *zip(layer.parameters, layer.gradients, strict=True)]

    def loss() -> float:
        return float((layer.forward(inputs) * direction).sum())

    for values, gradient in variables:
        for index in [tuple(random.integers(size) for size in values.shape) for _ in range(6)]:
            before = values[index]
            values[index] = before + 1e-6
            above = loss()
            values[index] = before - 1e-6
            slope = (above - loss()) / 2e-6
            values[index] = before
            assert gradient[index] == pytest.approx(slope, rel=1e-3, abs=1e-4)


def test_training_learns_and_the_same_seed_gives_the_same_weights() -> None:
    random = np.random.default_rng(1)
    labels = np.arange(60) % 3
    inputs = (np.eye(3)[labels] + random.normal(scale=0.2, size=(60, 3))).astype(np.float32)

    def trained() -> Network:
        seeded = np.random.default_rng(2)
        network = Network((Dense("scores", seeded, inputs=3, outputs=3, relu=False),))
        train(network, inputs, labels, random=seeded, epochs=30, rate=0.05)
        return network

    first, second = trained(), trained()
    assert first.accuracy(inputs, labels) > 0.95
    assert (first.layers[0].parameters[0] == second.layers[0].parameters[0]).all()


def test_range_meets_zero_exactly_and_reaches_both_ends() -> None:
    steps = Range.of(-1.0, 3.0)
    real = (steps.quantize(np.array([-1.0, 0.0, 3.0], np.float32)).astype(float) - steps.zero_point) * steps.scale
    assert real[1] == 0
    assert np.abs(real - [-1, 0, 3]).max() <= steps.scale / 2


def test_int8_model_answers_nearly_as_the_float_network_and_always_as_the_same_bytes() -> None:
    random = np.random.default_rng(3)
    network = Network(
        (
            Conv("conv", random, inputs=1, outputs=3, size=3),
            DepthwiseConv("depthwise", random, channels=3, size=3),
            MaxPool("pool"),
            Dense("scores", random, inputs=4 * 4 * 3, outputs=5, relu=False),
        )
    )
    images = random.uniform(0, 16, (40, 8, 8, 1)).astype(np.float32)
    scale = Range(1 / 8, -128)
    data = write_tflite(int8_model(network, images, scale, description="test", names=NAMES))
    assert data == write_tflite(int8_model(network, images, scale, description="test", names=NAMES))

    exact = tflite_micro(write_tflite(float_model(network, images, description="test", names=NAMES)), images[:, None])
    steps = tflite_micro(data, scale.quantize(images)[:, None])
    assert np.abs((steps.astype(float) + 128) / 256 - exact).mean() < 0.05


def test_streaming_int8_model_answers_nearly_as_the_float_network() -> None:
    random = np.random.default_rng(4)
    first = Svdf("first", random, inputs=6, units=8, memory=4, hops=30)
    network = Network((first, Dense("scores", random, inputs=8, outputs=3, relu=False)))
    steps = Range(1 / 64, -128)
    stored = random.integers(-128, 128, (30, 1, 6)).astype(np.int8)
    real = ((stored.astype(np.float32) - steps.zero_point) * np.float32(steps.scale))[:, 0]
    data = write_tflite(int8_model(network, real, steps, description="test", names=NAMES))
    got = (tflite_micro(data, stored)[:, 0].astype(float) + 128) / 256
    assert np.abs(got - softmax(network.scores(real))).mean() < 0.02
    without_memory = (tflite_micro(data, stored[20:])[:, 0].astype(float) + 128) / 256
    assert np.abs(without_memory[:3] - got[20:23]).max() > 0.02


def test_inputs_with_a_negative_label_do_not_train() -> None:
    inputs, labels = np.eye(4, dtype=np.float32), np.array([0, 1, 2, -1])

    def trained(last: float) -> np.ndarray:
        network = Network((Dense("scores", np.random.default_rng(5), inputs=4, outputs=3, relu=False),))
        inputs[3, 3] = last
        train(network, inputs, labels, random=np.random.default_rng(6), epochs=3, rate=0.1, batch=2, decay=0)
        return network.layers[0].parameters[0]

    assert (trained(1.0) == trained(9.0)).all()


def held_back(path: Path) -> tuple[list[int], list[int], list[list[float]]]:
    """Read the C table that a training script wrote: true classes, the host's classes, the values."""
    rows = re.findall(r"^ *\{(\d+), (\d+), \{(.*)\}\},$", path.read_text(), re.MULTILINE)
    values = [[float(word.rstrip("f")) for word in row.split(", ")] for _, _, row in rows]
    return [int(label) for label, _, _ in rows], [int(host) for _, host, _ in rows], values


@pytest.mark.parametrize(
    ("example", "name", "table", "quantize"),
    [
        ("digits", "digits", "test_split", Range(1 / 8, -128).quantize),
        ("two-models", "iris", "iris_samples", Range(0.05, -128).quantize),
        ("two-models", "wine", "wine_samples", lambda values: values),
    ],
)
def test_committed_files_belong_together(example: str, name: str, table: str, quantize: object) -> None:
    folder = EXAMPLES / example
    data = (folder / f"models/{name}.tflite").read_bytes()
    with np.load(folder / f"tests/{name}.npz") as vectors:
        assert len(vectors["in0"]) >= 16
        assert (tflite_micro(data, vectors["in0"]) == vectors["out0"]).all()
        shape = vectors["in0"].shape[1:]

    labels, host, values = held_back(folder / f"src/{table}.c")
    inputs = quantize(np.array(values, np.float32)).reshape(len(values), *shape)
    answers = tflite_micro(data, inputs).reshape(len(values), -1).argmax(axis=1)
    assert answers.tolist() == host
    if name == "digits":
        assert len(labels) == 450
        assert np.mean(answers == labels) >= 0.97


def test_the_stream_of_the_keyword_example_is_what_the_host_heard() -> None:
    """TensorFlow Lite Micro computes the committed probabilities from the front end and the network."""
    folder = EXAMPLES / "keyword"
    wav = (folder / "audio/stream.wav").read_bytes()
    assert (wav[:4], wav[8:16], wav[36:42]) == (b"RIFF", b"WAVEfmt ", b"\x00\x00data")
    inverted = ~np.frombuffer(wav[46:], np.uint8).astype(int) & 255
    magnitudes = (((inverted & 15) << 3) + 132 << (inverted >> 4 & 7)) - 132
    samples = np.where(inverted & 128, -magnitudes, magnitudes).astype(np.int16).reshape(-1, 320)

    features = tflite_micro((folder / "models/frontend.tflite").read_bytes(), samples)
    probabilities = tflite_micro((folder / "models/words.tflite").read_bytes(), features)
    table = re.findall(r"^    \{([-\d, ]+)\},$", (folder / "src/stream.c").read_text(), re.MULTILINE)
    assert probabilities[:, 0].tolist() == [[int(value) for value in row.split(", ")] for row in table]
    for name, inputs, outputs in (("frontend", samples, features), ("words", features, probabilities)):
        with np.load(folder / f"tests/{name}.npz") as vectors:
            count = len(vectors["in0"])
            assert count >= 32
            assert (vectors["in0"] == inputs[:count]).all()
            assert (vectors["out0"] == outputs[:count]).all()


@pytest.mark.sweep
def test_training_of_the_keyword_example_gives_the_committed_files(tmp_path: Path) -> None:
    left = shutil.ignore_patterns("build", ".sconsign.dblite", "__pycache__", "digits", "two-*")
    shutil.copytree(EXAMPLES, tmp_path / "examples", ignore=left)
    made = ("models/frontend.tflite", "models/words.tflite", "audio/stream.wav", "src/stream.c", "src/stream.h")
    for name in (*made, "tests/frontend.npz", "tests/words.npz"):
        (tmp_path / "examples/keyword" / name).unlink()
    script = tmp_path / "examples/keyword/train.py"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "spoken: yes house left no stop  recognised: yes left no stop\n" in done.stdout
    for name in made:
        assert (script.parent / name).read_bytes() == (EXAMPLES / "keyword" / name).read_bytes(), name
    for name in ("frontend", "words"):  # zlib decides about the bytes of these
        with (
            np.load(script.parent / f"tests/{name}.npz") as now,
            np.load(EXAMPLES / f"keyword/tests/{name}.npz") as old,
        ):
            assert all((now[key] == old[key]).all() for key in ("in0", "out0"))
