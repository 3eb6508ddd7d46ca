"""Networks that TensorFlow Lite Micro does not run say that their numbers are those of LiteRT."""

from pathlib import Path

from mlfbuild.archive.describe import describe_text
from mlfbuild.core.errors import UsageError
from mlfbuild.native.build import read_network
from support.errors import raises
from support.hybrid_networks import hybrid
from support.native import compile_bytes, request
from support.tflite_builder import Network
from support.unsigned_networks import own


def inspected(model: bytes) -> str:
    return " ".join(describe_text(compile_bytes(model)).split())


def plain() -> bytes:
    net = Network()
    return net.build([net.softmax(net.input((1, 4), 0.1, 3))])


def test_inspect_names_the_runtime_whose_numbers_the_code_has() -> None:
    unsigned, mixed = (next(iter(cases)).model for cases in (own("network", 1), hybrid("network", 1)))
    assert "as TensorFlow Lite Micro of" in inspected(plain())
    for model, words in ((unsigned, "uint8 operators"), (mixed, "layers of int8 weights over float32")):
        text = inspected(model)
        assert "as TensorFlow Lite Micro of" not in text
        assert f"{words} have the numbers of LiteRT's reference kernels" in text


def test_a_release_of_tensorflow_lite_micro_cannot_be_selected(tmp_path: Path) -> None:
    (case,) = own("network", 1)
    path = tmp_path / "net.tflite"
    path.write_bytes(case.model)
    wanted = request("net")
    for date in ("2026-10-12", "2026-10-13"):
        with raises(UsageError, "tflm-of-litert"):
            read_network(type(wanted)("net", path, wanted.cpu, options={"tflm": date}))
