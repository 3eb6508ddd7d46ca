"""Folders and functions as data: what a case is, which keys are honoured, and what is refused where."""

import wave
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pytest
from PIL import Image

from mlfbuild.core import MlfError, file_sha256
from mlfbuild.datasets import (
    Batch,
    DataKeys,
    FrontEnd,
    data_digest,
    data_files,
    data_problems,
    front_end,
    open_data,
    sources,
)
from mlfbuild.library import TensorInfo
from mlfbuild.native import evaluate_in_turn, parse_model
from support.oracle import tflite_micro_cases

GREY = TensorInfo("image", "float32", 4 * 2 * 3, (1, 2, 3, 1))


def tensor(*shape: int, dtype: str = "float32") -> TensorInfo:
    return TensorInfo("x", dtype, int(np.prod(shape)) * np.dtype(dtype).itemsize, shape)


def write_image(path: Path, pixels: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.array(pixels, np.uint8)).save(path)


def write_wav(path: Path, samples: np.ndarray, *, channels: int = 1, rate: int = 16000) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(samples.astype("<i2").tobytes())


def batches(keys: DataKeys, *inputs: TensorInfo, size: int = 2) -> list[Batch]:
    return list(open_data(keys, inputs).batches(size))


def in_turn(content: bytes, hops: np.ndarray) -> np.ndarray:
    return np.stack([row.ravel() for (row,) in tflite_micro_cases(content, [[hop] for hop in hops])]).astype(int)


def refusal(keys: DataKeys, *inputs: TensorInfo) -> MlfError:
    with pytest.raises(MlfError) as caught:
        batches(keys, *inputs)
    return caught.value


def test_folders_of_images_are_classes_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name, value in (("b/2.png", 20), ("a/1.png", 10), ("b/1.PNG", 30)):
        write_image(tmp_path / name, np.full((2, 3), value))
    (tmp_path / ".DS_Store").touch()
    data = open_data(DataKeys(tmp_path, mean=(10,), std=(10,)), [GREY])
    first, second = data.batches(2)
    assert (data.cases, data.classes) == (3, ("a", "b"))
    assert np.concatenate([first.inputs[0], second.inputs[0]])[:, 0, 0, 0, 0].tolist() == [0, 2, 1]
    assert first.labels.tolist() + second.labels.tolist() == [0, 1, 1]


def test_channels_are_where_the_input_has_them_and_resizing_is_that_of_pillow(tmp_path: Path) -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (5, 7, 3))
    write_image(tmp_path / "one.png", pixels)
    keys = DataKeys(tmp_path, resize=(4, 6), mean=(1, 2, 3), std=(2,))
    (last,), (first,) = batches(keys, tensor(1, 4, 6, 3)), batches(keys, tensor(1, 3, 4, 6))
    assert last.labels is None
    expected = np.asarray(Image.open(tmp_path / "one.png").resize((6, 4), Image.Resampling.BILINEAR), np.float32)
    assert (last.inputs[0][0, 0] == (expected - [1, 2, 3]) / 2).all()
    assert (first.inputs[0][0, 0] == last.inputs[0][0, 0].transpose(2, 0, 1)).all()


def test_recordings_are_samples_of_one_second_or_less(tmp_path: Path) -> None:
    samples = np.arange(6) * 1000
    write_wav(tmp_path / "one.wav", samples)
    (real,) = batches(DataKeys(tmp_path), tensor(1, 8))
    assert real.inputs[0].ravel().tolist() == [*(samples / 32768).tolist(), 0, 0]
    (stored,) = batches(DataKeys(tmp_path), tensor(8, dtype="int16"))
    assert stored.inputs[0].tolist() == [[*samples.tolist(), 0, 0]]


@pytest.mark.parametrize(("features", "width"), [("log-mel", 40), ("mfcc", 10)])
def test_features_on_the_host_are_those_of_the_file_for_firmware(tmp_path: Path, features: str, width: int) -> None:
    """In TensorFlow Lite Micro, and in the references of operators run after run."""
    random = np.random.default_rng(2)
    samples = (random.normal(size=(50, 320)) * np.geomspace(20, 9000, 50)[:, np.newaxis]).astype(np.int16)
    write_wav(tmp_path / "clips/noise.wav", samples)
    (batch,) = batches(DataKeys(tmp_path / "clips", features=features), tensor(1, 49, width))

    content = front_end(settings := FrontEnd(features, width))
    (tmp_path / "frontend.tflite").write_bytes(content)
    expected = in_turn(content, samples)
    real = (expected.astype(np.float32) - settings.zero_point) * np.float32(settings.scale)
    assert (batch.inputs[0][0, 0] == real[1:]).all()
    assert len(np.unique(expected)) > 25
    graph = parse_model(content, "frontend", tmp_path)
    runs = evaluate_in_turn(graph, ({graph.inputs[0]: hop} for hop in samples[:3]))
    assert [values[graph.outputs[0]].ravel().tolist() for values in runs] == expected[:3].tolist()


def test_mfcc_is_the_cosine_transform_of_the_logarithms() -> None:
    """Of scipy, but for the steps of int8 and the rounding of its table."""
    from scipy.fft import dct

    hop = (np.sin(np.arange(320) / 7) * 8000).astype(np.int16)
    mel, mfcc = FrontEnd(), FrontEnd("mfcc", 13)
    rows = [(in_turn(front_end(each), hop[np.newaxis])[0] - each.zero_point) * each.scale for each in (mel, mfcc)]
    assert np.abs(dct(rows[0], norm="ortho")[:13] - rows[1]).max() < 0.375


def test_functions_yield_inputs_labels_and_outputs(tmp_path: Path) -> None:
    (tmp_path / "cases.py").write_text(
        "import numpy as np\n"
        "def plain():\n"
        "    return [np.ones((2, 3, 1), 'float32')] * 3\n"
        "def labelled():\n"
        "    for number in range(3):\n"
        "        yield np.full((2, 3, 1), number, 'float32'), number\n"
        "def two():\n"
        "    yield np.ones(2, 'float32'), np.zeros(3, 'float32'), np.full(4, 7.0)\n"
    )
    keys = DataKeys(tmp_path / "cases:labelled")
    found = batches(keys, GREY)
    assert [batch.labels.tolist() for batch in found] == [[0, 1], [2]]
    assert found[1].inputs[0].shape == (1, 1, 2, 3, 1)
    assert [len(batch) for batch in batches(DataKeys(tmp_path / "cases:plain"), GREY)] == [2, 1]
    data = open_data(DataKeys(tmp_path / "cases:two"), [tensor(2), tensor(3)], [tensor(4)])
    (batch,) = data.batches(8)
    assert (batch.inputs[1].tolist(), batch.outputs[0].tolist()) == ([[0, 0, 0]], [[7, 7, 7, 7]])


def test_the_module_of_a_function_and_its_files_are_the_data(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    module, table = tmp_path / "tools/cases.py", tmp_path / "table.csv"
    module.write_text("def test():\n    yield 0.5\n")
    table.write_text("1")
    keys = DataKeys(tmp_path / "tools/cases:test", files=(table,))
    assert data_files(keys) == [module, table] == data_files(DataKeys(tmp_path / "tools.cases:test", (table,)))
    before = data_digest(keys)
    table.write_text("2")
    assert data_digest(keys) != before
    assert batches(keys, tensor())[0].inputs[0] == 0.5
    module.write_text("def test():\n    yield 0.25\n")
    assert batches(keys, tensor())[0].inputs[0] == 0.25


def test_files_of_other_classes_are_other_data(tmp_path: Path) -> None:
    write_image(tmp_path / "a/1.png", [[1]])
    write_image(tmp_path / "b/2.png", [[1]])
    before = data_digest(DataKeys(tmp_path))
    assert data_digest(DataKeys(tmp_path, resize=(2, 3))) != before
    (tmp_path / "a/1.png").rename(tmp_path / "b/1.png")
    assert data_digest(DataKeys(tmp_path)) != before


def test_a_file_is_read_again_when_it_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, reads = tmp_path / "data.npz", []

    def counted(file: BinaryIO) -> str:
        reads.append(file.name)
        return file_sha256(file)

    monkeypatch.setattr(sources, "file_sha256", counted)
    monkeypatch.setattr(sources, "_COARSEST", 10**15)
    path.write_bytes(b"one")
    first = [data_digest(DataKeys(path)) for _ in range(2)]
    assert (len({*first}), len(reads)) == (1, 2), "it may still change within the same tick of a clock"
    monkeypatch.setattr(sources, "_COARSEST", 0)
    assert [data_digest(DataKeys(path)) for _ in range(2)] == first
    assert len(reads) == 3
    path.write_bytes(b"three")
    assert data_digest(DataKeys(path)) != first[0]


@pytest.mark.parametrize(
    ("body", "code", "line"),
    [
        ("def test():\n    raise KeyError('x')\n", "function-failed", 2),
        ("def test():\n    yield 1.0\n    1 / 0\n", "function-failed", 3),
        ("import nothing_of_this_name\n", "function-not-imported", 0),
        ("def other(): pass\n", "no-such-function", 0),
        ("def test():\n    return 1\n", "data-not-iterable", 0),
        ("def test():\n    return ()\n", "data-without-cases", 0),
        ("def test():\n    yield 1.0, 2, 3\n", "data-parts", 0),
        ("def test():\n    yield 1.0, 2\n    yield 1.0\n", "data-labels", 0),
        ("def test():\n    yield [1.0, 2.0]\n", "data-shape", 0),
        ("def test():\n    yield float('nan')\n", "data-not-finite", 0),
        ("def test():\n    yield 'text'\n", "data-type", 0),
    ],
)
def test_mistakes_of_functions(tmp_path: Path, body: str, code: str, line: int) -> None:
    (tmp_path / "cases.py").write_text(body)
    error = refusal(DataKeys(tmp_path / "cases:test"), tensor())
    assert error.code == code
    assert not line or error.place == f"{tmp_path / 'cases.py'}:{line}"
    assert refusal(DataKeys(tmp_path / "none:test"), tensor()).code == "function-not-imported"


def test_mistakes_of_folders(tmp_path: Path) -> None:
    def code(*inputs: TensorInfo, **keys: object) -> str:
        return refusal(DataKeys(tmp_path / "data", **keys), *inputs).code

    assert code(GREY) == "no-data-file"
    (tmp_path / "data").mkdir()
    assert code(GREY) == "data-without-cases"
    write_image(tmp_path / "data/a/1.png", np.zeros((4, 4)))
    assert code(GREY, GREY) == "data-folder-unfit"
    assert code(GREY) == "data-image-size"
    assert code(GREY, resize=(3, 2)) == "data-resize"
    assert code(GREY, resize=(2, 3), std=(1, 2)) == "data-std"
    assert code(GREY, rate=16000) == "data-key-unused"
    assert code(tensor(1, 49, 40)) == "data-image-size"
    assert code(tensor(7)) == "data-no-image"
    (tmp_path / "data/b").mkdir()
    assert code(GREY, resize=(2, 3)) == "data-folder-layout"
    (tmp_path / "data/b/1.png").write_bytes((tmp_path / "data/a/1.png").read_bytes()[:40])
    assert code(GREY, resize=(2, 3)) == "not-an-image"
    (tmp_path / "data/c.txt").touch()
    assert code(GREY) == "data-folder-layout"
    (tmp_path / "data/c.txt").rename(tmp_path / "data/b/c.txt")
    assert code(GREY) == "data-file-kind"


@pytest.mark.parametrize(
    ("count", "form", "keys", "code"),
    [
        (320 * 51, {}, {"features": "log-mel"}, "data-recording-length"),
        (160, {"channels": 2}, {}, "data-recording-form"),
        (160, {"rate": 8000}, {}, "data-recording-form"),
        (160, {"rate": 44100}, {"rate": 44100, "features": "mfcc", "hop": 1}, "data-window"),
        (160, {}, {"features": "log-mel", "hop": 40 * 10**6}, "front-end-unfit"),
        (160, {}, {"features": "log-mel", "window": 5 * 10**6, "hop": 5 * 10**6}, "front-end-unfit"),
        (160, {}, {"hop": 10**6}, "data-key-unused"),
    ],
)
def test_mistakes_of_recordings(tmp_path: Path, count: int, form: object, keys: object, code: str) -> None:
    write_wav(tmp_path / "one.wav", np.zeros(count), **form)
    assert refusal(DataKeys(tmp_path, **keys), tensor(1, 49, 40)).code == code
    content = (tmp_path / "one.wav").read_bytes()
    for size in (0, 20, len(content) - 9):
        (tmp_path / "one.wav").write_bytes(content[:size])
        if not keys:
            assert refusal(DataKeys(tmp_path), tensor(1, 49, 40)).code in {"not-a-recording", "data-recording-form"}


def test_keys_of_other_kinds_and_a_division_by_zero_are_found_before_a_network_is_read(tmp_path: Path) -> None:
    keys = DataKeys(tmp_path / "data.npz", files=(tmp_path,), std=(1, 0))
    assert [(key, mistake.code) for key, mistake in data_problems(keys)] == [
        ("files", "data-key-unused"),
        ("std", "data-key-unused"),
        ("std", "data-std-zero"),
    ]
