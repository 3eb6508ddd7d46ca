"""A network for a target with an Ethos-U: Vela's part becomes one call of the driver, the rest C for the core."""

import functools
import random
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

from mlfbuild import open_archive, write_archive
from mlfbuild.compilers import compiler_called
from mlfbuild.core import InputFileError, MlfError, ToolNotFoundError, UnsupportedModelError, UsageError, extras
from mlfbuild.ethos_u import VelaResult, compile_with_vela, vela_version
from mlfbuild.library import CompileRequest, Module
from mlfbuild.library.cgen import CACHE_LINE, aligned
from mlfbuild.library.keys import Placement
from mlfbuild.native import npu as for_npu
from mlfbuild.native.frontends.tflite.npu import OriginalNetwork, with_npu_calls
from mlfbuild.native.frontends.tflite.reader import RawOperator, Reader
from support.firmware_repo import tiny_network, two_layers
from support.host_c import WARNINGS
from support.lstm_networks import groups_of_four
from support.npu_models import U55_128, U65_DEDICATED, request_for, require_vela, write_network
from support.subgraph_networks import STEPS, int8_loop
from support.tflite_builder import Network
from support.unsigned_networks import own
from support.wake_word import wake_word

Edit = Callable[[bytes], bytes]


@pytest.fixture(autouse=True)
def _vela() -> None:
    require_vela()


def compiled(request: CompileRequest) -> Module:
    (module,) = compiler_called("native").compile(request).modules
    return module


def test_the_archive_has_stream_weights_and_facts(tmp_path: Path) -> None:
    request = request_for(write_network(tmp_path))
    module = compiled(request)
    files = {str(file.path): bytes(file.content) for file in module.device_files}
    assert list(files) == ["ethos-u/tiny_commands.bin", "ethos-u/tiny_weights.bin"]
    assert files["ethos-u/tiny_commands.bin"].startswith(b"COP1")
    facts = module.npu
    assert facts is not None and facts.accelerator == "ethos-u55-128" and facts.on_core == ()
    assert (facts.stream, facts.weights) == tuple(map(len, files.values()))
    assert aligned(facts.scratch, CACHE_LINE) == module.main[0].workspace_size and facts.fast == 0
    assert [(entry.device, entry.workspace_size, entry.constants_size) for entry in module.main] == [
        (1, module.main[0].workspace_size, 0),
        (12, 0, facts.stream + facts.weights),
    ]
    assert sum(layer.macs for layer in facts.estimate.layers) == facts.estimate.macs == 8 * 4
    assert module.network is not None and module.network.macs is None  # those of a single call are not known
    assert [(each.short_name, each.version_spec) for each in module.external_dependencies] == [
        ("ethos-u-core-driver", ">=22.5")
    ]
    (context,) = module.contexts
    assert (context.device_type, context.target, context.compiler) == ("ethos-u", "ethos-u55-128", facts.compiler)
    assert compiled(request) == module
    archive = tmp_path / "tiny.tar"
    write_archive(compiler_called("native").compile(request), archive)
    assert open_archive(archive).modules == (module,)


def test_the_code_calls_the_driver_and_compiles_without_warnings(tmp_path: Path, tool: Callable[..., str]) -> None:
    model = tmp_path / "tiny.tflite"
    model.write_bytes(two_layers(256))
    module = compiled(request_for(model, U65_DEDICATED))
    assert module.npu is not None and module.npu.fast > 0
    for file in module.codegen:
        path = tmp_path / "code" / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(file.content))
    source, include = tmp_path / "code/host/src/tiny_lib0.c", tmp_path / "code/host/include"
    text = source.read_text()
    size = aligned(module.npu.fast, CACHE_LINE)
    assert f"MLF_ALIGNED({CACHE_LINE}) static uint8_t tvmgen_tiny_npu_workspace[{size}];" in text
    assert "return MLF_TINY_NPU_FAILED;" in text
    driver = Path(__file__).parents[1] / "support/ethos_u"
    flags = [*WARNINGS, "-O2", "-mcpu=cortex-m55", "-I", include, "-isystem", driver]
    subprocess.run([tool("arm-none-eabi-gcc"), *flags, "-c", source, "-o", tmp_path / "tiny.o"], check=True)


def test_operators_may_stay_on_the_core(tmp_path: Path) -> None:
    path = tmp_path / "two.tflite"
    path.write_bytes(two_layers(16))
    kept = compiled(request_for(path, replace(U55_128, keep_on_core=("FULLY_CONNECTED",))))
    assert kept.npu is None and kept.device_files == () and kept.external_dependencies == ()
    assert kept.notes[0] == "the NPU is not used: Vela leaves all 2 operators to the core"
    assert kept.notes[1].startswith("stays on the core: FULLY_CONNECTED ")
    assert all(note.endswith(": keep-on-core names it") for note in kept.notes[1:])


def test_operators_that_vela_does_not_have_are_mistakes_of_the_key(tmp_path: Path) -> None:
    npu = replace(U55_128, keep_on_core=("SOFTMX",))
    with pytest.raises(UsageError, match="SOFTMX") as caught:
        compiled(request_for(write_network(tmp_path), npu))
    assert (caught.value.code, caught.value.place) == ("unknown-tflite-operator", "npu.keep-on-core[0]")


def test_a_section_of_constants_does_not_apply_to_the_npu(tmp_path: Path) -> None:
    library = compiled(request_for(write_network(tmp_path), placement=Placement(weights=".ext")))
    assert any(note.startswith("placement.params places only constants of the core") for note in library.notes)


def unsigned_ends() -> bytes:
    """Return a network of int8 whose input and output are uint8, as converters make it."""
    network = Network()
    values = network.quantize(network.input((1, 8), 0.1, 128, dtype="uint8"), 0.1)
    values = network.fully_connected(values, np.ones((8, 8), np.int8), None, weight_scales=[0.1], scale=0.1)
    output = network.activation((1, 8), 0.1, 128, dtype="uint8")
    return network.build([network.operator("QUANTIZE", [values], output, "QuantizeOptions")])


@pytest.mark.parametrize(
    ("model", "kept", "kinds"),
    [
        (unsigned_ends(), (), "ETHOS_U"),
        (unsigned_ends(), ("FULLY_CONNECTED",), "ETHOS_U FULLY_CONNECTED ETHOS_U"),
        (next(own("network", 1)).model, (), "ETHOS_U"),
        (next(own("network", 1)).model, ("ADD",), "ETHOS_U QUANTIZE QUANTIZE ADD QUANTIZE ETHOS_U"),
    ],
)
def test_uint8_is_converted_for_the_core_only(tmp_path: Path, model: bytes, kept: tuple[str, ...], kinds: str) -> None:
    path = tmp_path / "net.tflite"
    path.write_bytes(model)
    module = compiled(request_for(path, replace(U55_128, keep_on_core=kept)))
    assert module.network is not None and module.npu is not None
    assert [each.operator for each in module.network.operators] == kinds.split()
    # Conversions are no operators of the file.
    assert [each.partition(" ")[0] for each in module.npu.on_core] == [*kept]
    assert {each.dtype for each in (*module.inputs, *module.outputs)} == {"uint8"}


def test_variables_are_states_of_the_core(tmp_path: Path) -> None:
    path = tmp_path / "net.tflite"
    path.write_bytes(wake_word("int8"))
    module = compiled(request_for(path))
    assert module.network is not None and module.npu is not None and module.npu.on_core == ()
    assert [each.operator for each in module.network.operators] == ["ETHOS_U"]
    assert [each.name for each in module.network.tensors if each.memory == "state"] == ["frames", "hidden"]
    # Of CALL_ONCE, which Vela moves behind the operators that read the variables.
    code = next(bytes(file.content) for file in module.codegen if file.path.suffix == ".c")
    assert b"tvmgen_net_initial_0" in code and b"tvmgen_net_initial_48" in code


def test_a_variable_that_is_read_after_its_assignment_is_refused(tmp_path: Path) -> None:
    """Vela moves the second READ_VARIABLE before ASSIGN_VARIABLE."""
    affine, network = {"scale": 0.5, "zero_point": -7}, Network()
    frame, handle = network.input((1, 8), **affine), network.variable("last")
    network.assign(handle, network.add(network.read(handle, (1, 8), **affine), frame, **affine))
    again = network.add(network.read(handle, (1, 8), **affine), frame, **affine)
    path = tmp_path / "net.tflite"
    path.write_bytes(network.build([again]))
    with pytest.raises(UnsupportedModelError) as caught:
        compiled(request_for(path))
    assert (caught.value.code, caught.value.place) == ("npu-variable-order", f"{path}: variable 'last'")


def test_a_loop_has_one_stream_for_all_its_runs(tmp_path: Path) -> None:
    path = tmp_path / "net.tflite"
    path.write_bytes(int8_loop({"scale": 0.05, "zero_point": 3}).build())
    module = compiled(request_for(path))
    assert module.network is not None and module.npu is not None
    assert [each.operator for each in module.network.operators] == ["ETHOS_U"] * (STEPS + 2)
    sizes = {str(file.path): len(file.content) for file in module.device_files}
    assert sorted(sizes) == [
        *(f"ethos-u/net_commands{at}.bin" for at in range(3)), "ethos-u/net_weights0.bin", "ethos-u/net_weights1.bin"
    ]  # fmt: skip
    assert module.npu.stream + module.npu.weights == sum(sizes.values()) == module.main[1].constants_size


@functools.cache
def _result() -> VelaResult:
    return compile_with_vela(tiny_network(0), U55_128, Path("tiny.tflite"))


def test_a_state_in_the_memory_of_the_npu_is_refused() -> None:
    """As Vela writes an LSTM, whose states are variable tensors of the operator."""
    reader = Reader(_result().model)
    (subgraph,) = reader.read()
    tensors = tuple(replace(each, is_variable=each.index in subgraph.inputs) for each in subgraph.tensors)
    with pytest.raises(UnsupportedModelError) as caught:
        with_npu_calls(reader, [replace(subgraph, tensors=tensors)], "ethos-u55-128", {})
    assert caught.value.code == "npu-with-state"


def read_back(data: bytes, vela_name: str | None = None) -> tuple[list[RawOperator], tuple[RawOperator, ...]]:
    """Return the operators of ``data``, and those that are read from what Vela would write, which has no gaps.

    ``vela_name`` is a name that Vela gives to tensors without one.
    """
    (subgraph,) = Reader(data).read()
    without = [replace(each, inputs=tuple(index for index in each.inputs if index >= 0)) for each in subgraph.operators]
    tensors = [replace(each, name=each.name or vela_name or "") for each in subgraph.tensors]
    written = replace(subgraph, operators=tuple(without), tensors=tuple(tensors))
    absent = OriginalNetwork.of(data, "net.tflite").absent
    (found,) = with_npu_calls(Reader(data), [written], "ethos-u55-128", absent)
    assert found.tensors == subgraph.tensors
    return list(subgraph.operators), found.operators


def test_operators_on_the_core_get_back_their_absent_inputs() -> None:
    """Vela writes the inputs of an operator without gaps, so that their places are those of the user's file."""
    before, after = read_back(groups_of_four(1).model)
    assert any(-1 in each.inputs for each in before) and after == tuple(before)


@pytest.mark.parametrize(
    ("names", "places", "clear"),
    [(("a", "b"), (1, 2), True), (("a", "a"), (2, 2), True), (("a", "a"), (1, 2), False), (("", ""), (1, 2), False)],
)
def test_absent_inputs_are_never_guessed(names: tuple[str, ...], places: tuple[int, ...], clear: bool) -> None:
    network = Network()
    values = network.input((1, 8), scale=0.1)
    for name, place in zip(names, places, strict=True):
        weights = np.ones((8, 8), np.int8)
        values = network.fully_connected(values, weights, None, weight_scales=[0.1], scale=0.1)
        network.tensors[values].name = name
        network.operators[-1].inputs.insert(place, -1)
    data = network.build([values])
    if clear:
        before, after = read_back(data, "<unnamed>")
        assert after == tuple(before)
    else:
        with pytest.raises(UnsupportedModelError) as caught:
            read_back(data, "<unnamed>")
        assert (caught.value.code, caught.value.exit_code) == ("npu-absent-inputs", 4)


def edited(monkeypatch: pytest.MonkeyPatch, edit: Edit) -> None:
    """Change what Vela wrote before it is read."""
    monkeypatch.setattr(for_npu, "compile_with_vela", lambda *_: replace(_result(), model=edit(_result().model)))


def _far(model: bytes) -> bytes:
    """Let the first output begin 2 GiB further."""
    at = model.index(struct.pack("<I", 0x4010), model.index(b"COP1"))
    return model[: at + 7] + b"\x80" + model[at + 8 :]


def _outside(model: bytes) -> bytes:
    """Give the last tensor an offset outside of the working memory."""
    at = model.index(struct.pack("<6i", 0, 1, 5, -1, -1, 0))
    return model[: at + 28] + struct.pack("<i", 1 << 20) + model[at + 32 :]


@pytest.mark.parametrize(
    ("edit", "code", "place"),
    [
        (_far, "npu-stream-damaged", "operator 0 (ethos-u): command stream"),
        (lambda model: model.replace(b"COP1", b"COP2"), "npu-stream-damaged", "operator 0 (ethos-u): command stream"),
        (_outside, "operator-invalid", "ETHOS_U"),
        (lambda model: model.replace(b"OfflineMemory", b"OfflineMemorx"), "tflite-malformed", "metadata"),
    ],
)
def test_what_vela_wrote_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, edit: Edit, code: str, place: str
) -> None:
    request = request_for(write_network(tmp_path))
    edited(monkeypatch, edit)
    with pytest.raises(MlfError) as caught:
        compiled(request)
    assert caught.value.code == code and place in str(caught.value)
    assert caught.value.exit_code == (4 if code == "operator-invalid" else 5)


def test_damaged_files_of_vela_end_in_an_error_or_compile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers, request = random.Random(2), request_for(write_network(tmp_path))

    def flip(model: bytes) -> bytes:
        changed = bytearray(model)
        for _ in range(numbers.choice((1, 2, 8))):
            changed[numbers.randrange(len(model))] ^= 1 << numbers.randrange(8)
        return bytes(changed)

    edited(monkeypatch, flip)
    codes = {_code(request) for _ in range(150)}
    assert {"npu-stream-damaged", "tflite-malformed"} <= codes


def _code(request: CompileRequest) -> str:
    """Return the code of the error of compiling ``request``, empty if there is none."""
    try:
        compiled(request)
    except MlfError as error:
        return error.code
    return ""


@pytest.mark.parametrize(
    ("more", "place"),
    [
        ({"executor": "graph"}, "tiny: executor"),
        ({"options": {"stream": True}}, "tiny: options.stream"),
        ({"options": {"layout": "single-file"}}, "tiny: options.layout"),
        ({"options": {"signature": "run"}}, "tiny: options.signature"),
        ({"options": {"parameters": "replaceable"}}, "tiny: parameters"),
    ],
)
def test_options_that_an_npu_excludes(tmp_path: Path, more: dict[str, object], place: str) -> None:
    with pytest.raises(UsageError) as caught:
        compiled(request_for(write_network(tmp_path), **more))
    assert (caught.value.code, caught.value.place) == ("option-with-npu", place)


def test_a_file_that_is_no_model_is_refused_before_vela_runs(tmp_path: Path) -> None:
    path = write_network(tmp_path)
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(InputFileError) as caught:
        compiled(request_for(path))
    assert caught.value.code == "tflite-malformed"


def test_a_file_that_vela_compiled_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tiny.tflite"
    path.write_bytes(_result().model)
    with pytest.raises(UnsupportedModelError) as caught:
        compiled(request_for(path))
    assert caught.value.code == "model-compiled-for-accelerator"


def test_a_configuration_that_vela_does_not_have(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        compiled(request_for(write_network(tmp_path), replace(U55_128, system_config="None_of_Arm")))
    assert (caught.value.code, caught.value.place) == ("npu-refused-by-vela", "npu")


def test_without_vela_the_error_names_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    monkeypatch.setattr(extras, "_is_there", lambda _: False)
    vela_version.cache_clear()
    with pytest.raises(ToolNotFoundError) as caught:
        compiled(request_for(write_network(tmp_path)))
    assert (caught.value.exit_code, caught.value.hint) == (3, "pip install 'ethos-u-vela>=5.2,<6'")
    other = replace(U55_128, python=sys.base_exec_prefix + "/bin/no-such-python")
    with pytest.raises(ToolNotFoundError) as caught:
        compiled(request_for(write_network(tmp_path), other))
    assert caught.value.hint == f"{other.python} -m pip install 'ethos-u-vela>=5.2,<6'"
    vela_version.cache_clear()
