"""Networks for an Ethos-U in images for mps3-an547: a stand-in for the driver computes what the NPU would."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import flatbuffers
import numpy as np
import pytest

from mlfbuild import open_archive
from mlfbuild.cli.output.invocation import run
from mlfbuild.library.cgen import CACHE_LINE, aligned
from mlfbuild.library.keys import Npu
from mlfbuild.native import Tensor, read_network
from mlfbuild.native.frontends.tflite import parse_tflite
from support.ethos_u_driver import PROVIDER, npu_calls, write_driver
from support.examples import first_on_push
from support.npu_models import U55_128, U55_256, U65_256, U65_DEDICATED, request_for, require_vela
from support.oracle import litert_run, tflite_micro_cases, tflite_micro_run
from support.subgraph_networks import int8_loop
from support.unsigned_networks import own
from support.wake_word import wake_word

HASHES = {
    "ad": "87cf24194ef93d1d9b11a591d805526b98008e351655d29883c825c9c106ba24",
    "ic": "3c002613d1b2475eb51dd78dfb85a546c8ae658dee71cf6ade43b022fe205415",
    "kws": "aeea436800704fce17b17292e4412630ad856e9d777c044c64ef748a880bd0ae",
    "vww": "597a384c8c2c8a1276f04702f25013b7838f2f814f1ca7c174d295b73e3d6b7b",
}
"""The networks that are checked with each NPU."""
PUBLIC = {
    "audio_preprocessor_int8": "278949d197166fb8b580c0bdc94e902fb709fec0569dcf5766816b28285440e5",
    "hello_world_int8": "505ee4fae7fa46ab67bea4c08b4969eb3eb8b9114c50595ec4a29d9a27993202",
    "keyword_scrambled_8bit": "1d5e0e5c9a7369ca34543fefb46e3047cd6db281adcd8bb8a96aba0a48e88757",
    "micro_speech_quantized": "09e5e2a9dfb2d8ed78802bf18ce297bff54281a66ca18e0c23d69ca14f822a83",
    "person_detect": "808cfdfc0cf3a6fa6f6fa26bfa379ea97c16d5db7334637766e39c3408502e9d",
    "pretrained_resnet_large_int8": "dc27dcd823f5665533352f7da516b0c9bc6f089914b8283782e55961b3423fcf",
    "simple_add_model": "ae54358831f8a6ce8d0baa5c19437d76ab530710d9d491acb5860d1e5b552e26",
    "str_ww_ref_model": "3af8550895ba7d5c584277102b5075c52dcfa63ba9d2b2240f37c4e6abd5dd2b",
    "toycar_quant_fullint": "861f3de4465a176099248090583ae5b6be00bc6f0c6bac16ce3bda004a7fa9c2",
    "trained_lstm_int8": "a44e4d8a6c051db582414915ee28ee0462bd47e9f150e4a095fb5a126b88d885",
}
"""Networks of tensorflow/tflite-micro and mlcommons/tiny, which the shared folder may have in models/public."""
Cases = Sequence[Sequence[np.ndarray]]
KEPT = {"trained_lstm_int8": ("UNIDIRECTIONAL_SEQUENCE_LSTM",)}
"""Operators with a state, which are not supported on an NPU."""
PROJECT = """\
mlfbuild: 1
targets:
  m55:
    cpu: cortex-m55
    board: mps3-an547
    runner: {{qemu: mps3-an547}}
    npu: {npu}
models:
  {name}: {{source: {source}, vectors: {vectors}}}
dependencies:
  ethos-u-core-driver: {driver}
"""


def verified(folder: Path, source: Path, vectors: Path, npu: Npu) -> int:
    """Build the network with the stand-in for the driver, run its vectors in QEMU, and return the exit status."""
    write_driver(folder / "driver", request_for(source, npu))
    keys = [f"type: {npu.type}", f"macs: {npu.macs}", f"memory-mode: {npu.memory_mode}"]
    keys += [f"keep-on-core: [{', '.join(npu.keep_on_core)}]"] if npu.keep_on_core else []
    text = PROJECT.format(
        npu=f"{{{', '.join(keys)}}}", name=source.stem, source=source, vectors=vectors, driver=PROVIDER
    )
    (folder / "mlfbuild.yml").write_text(text)
    return run(["verify", "-f", str(folder / "mlfbuild.yml")])


def computed(folder: Path, model: bytes, inputs: Cases, outputs: Cases, npu: Npu) -> bool:
    """Return whether ``model`` computes ``outputs`` from ``inputs`` in QEMU, case by case."""
    source = folder / "network.tflite"
    source.write_bytes(model)
    arrays = {
        f"{kind}{at}": np.stack(values)
        for kind, cases in (("in", inputs), ("out", outputs))
        for at, values in enumerate(zip(*cases, strict=True))
    }
    np.savez(folder / "vectors.npz", **arrays)
    return verified(folder, source, folder / "vectors.npz", npu) == 0


def first_cases(vectors: Path, folder: Path, count: int) -> Path:
    """Write the first ``count`` cases of ``vectors`` to ``folder``."""
    path = folder / "vectors.npz"
    with np.load(vectors) as arrays:
        np.savez(path, **{name: array[:count] for name, array in arrays.items()})
    return path


def test_the_core_and_the_npu_take_turns(tmp_path: Path, shared: Path, tool: Callable[..., str]) -> None:
    require_vela()
    tool("qemu-system-arm")
    source, npu = shared / "models/kws_int8.tflite", replace(U55_128, keep_on_core=("DEPTHWISE_CONV_2D", "SOFTMAX"))
    assert len(npu_calls(request_for(source, npu))) == 5
    assert verified(tmp_path, source, first_cases(shared / "golden/kws_int8.npz", tmp_path, 1), npu) == 0
    # All tensors of the core's operators are in the memory of the NPU, at Vela's addresses.
    (module,) = open_archive(tmp_path / "build/mlf/m55/kws_int8.tar").modules
    assert module.npu is not None and module.main[0].workspace_size == aligned(module.npu.scratch, CACHE_LINE)
    code = next(bytes(file.content) for file in module.codegen if file.path.name == "kws_int8_lib0.c")
    assert code.count(b"    memcpy(") == 1  # from the caller


@pytest.mark.parametrize("kept", first_on_push(["ADD", "", "SOFTMAX CONV_2D", "FULLY_CONNECTED ADD"]))
def test_uint8(tmp_path: Path, tool: Callable[..., str], kept: str) -> None:
    """The NPU reads and writes uint8, which the core holds as int8."""
    require_vela()
    tool("qemu-system-arm")
    (case,) = own("network", 1)
    outputs = litert_run(case.model, case.inputs)
    assert computed(tmp_path, case.model, [case.inputs], [outputs], replace(U55_128, keep_on_core=tuple(kept.split())))


@pytest.mark.parametrize(
    ("model", "kept"),
    first_on_push(
        [
            (wake_word("int8"), ("CONCATENATION",)),
            (wake_word("int8"), ()),
            (wake_word("int8"), ("CONV_2D",)),
            (int8_loop({"scale": 0.05, "zero_point": 3}).build(), ()),
            (int8_loop({"scale": 0.05, "zero_point": 3}).build(), ("ADD",)),
        ]
    ),
)
def test_variables_and_loops(tmp_path: Path, tool: Callable[..., str], model: bytes, kept: tuple[str, ...]) -> None:
    """Variables are states of the core, and a loop calls the NPU several times with the same stream."""
    require_vela()
    tool("qemu-system-arm")
    graph = parse_tflite(model, "net", "net")
    numbers = np.random.default_rng(3)
    inputs = [[random_values(numbers, graph.tensor(each)) for each in graph.inputs] for _ in range(8)]
    assert computed(tmp_path, model, inputs, tflite_micro_cases(model, inputs), replace(U55_128, keep_on_core=kept))


@pytest.mark.sweep
@pytest.mark.parametrize("npu", [U55_128, U65_256, U65_DEDICATED], ids=lambda npu: npu.accelerator)
@pytest.mark.parametrize(("name", "kept"), [("ic", "ADD"), ("kws", "DEPTHWISE_CONV_2D"), ("vww", "CONV_2D")])
def test_kinds_of_operators_stay_on_the_core(tmp_path: Path, shared: Path, name: str, kept: str, npu: Npu) -> None:
    require_vela()
    source, npu = shared / f"models/{name}_int8.tflite", replace(npu, keep_on_core=(kept,))
    assert verified(tmp_path, source, first_cases(shared / f"golden/{name}_int8.npz", tmp_path, 2), npu) == 0


@pytest.mark.sweep
@pytest.mark.parametrize("npu", [U55_128, U55_256, U65_256, U65_DEDICATED], ids=lambda npu: npu.accelerator)
@pytest.mark.parametrize("name", HASHES)
def test_networks_of_mlperf_tiny(tmp_path: Path, shared: Path, name: str, npu: Npu) -> None:
    require_vela()
    source = shared / f"models/{name}_int8.tflite"
    assert hashlib.sha256(source.read_bytes()).hexdigest() == HASHES[name]
    assert verified(tmp_path, source, shared / f"golden/{name}_int8.npz", npu) == 0


@pytest.mark.sweep
@pytest.mark.parametrize("npu", [U55_128, U55_256, U65_256], ids=lambda npu: npu.accelerator)
@pytest.mark.parametrize("name", PUBLIC)
def test_public_networks_equal_tensorflow_lite_micro(tmp_path: Path, shared: Path, name: str, npu: Npu) -> None:
    require_vela()
    source = shared / f"models/public/{name}.tflite"
    if not source.is_file():
        pytest.skip(f"{source} is not there")
    data = source.read_bytes()
    assert hashlib.sha256(data).hexdigest() == PUBLIC[name]
    source = tmp_path / source.name
    source.write_bytes(with_names(data))
    npu = replace(npu, keep_on_core=KEPT.get(name, ()))
    graph, _ = read_network(request_for(source, None))
    numbers = np.random.default_rng(3)
    inputs = [random_values(numbers, graph.tensor(each)) for each in graph.inputs]
    outputs = tflite_micro_run(data, inputs)
    arrays = {f"in{at}": value[None] for at, value in enumerate(inputs)}
    np.savez(tmp_path / "vectors.npz", **arrays, **{f"out{at}": value[None] for at, value in enumerate(outputs)})
    assert verified(tmp_path, source, tmp_path / "vectors.npz", npu) == 0


def with_names(data: bytes) -> bytes:
    """Return the network ``data`` with names of tensors, by which the stand-in finds the NPU's part."""
    schema = pytest.importorskip("ai_edge_litert.schema_py_generated")
    model = schema.ModelT.InitFromPackedBuf(data)
    tensors = model.subgraphs[0].tensors
    if all(tensor.name for tensor in tensors):
        return data
    for index, tensor in enumerate(tensors):
        tensor.name = f"t{index}"
    builder = flatbuffers.Builder(len(data))
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def random_values(numbers: np.random.Generator, tensor: Tensor) -> np.ndarray:
    """Return random integers, or floats near 0, for an input."""
    kind = np.dtype(tensor.dtype.numpy)
    if kind.kind == "f":
        return numbers.normal(size=tensor.shape).astype(kind)
    limits = np.iinfo(kind)
    return numbers.integers(limits.min, int(limits.max) + 1, tensor.shape, kind)
