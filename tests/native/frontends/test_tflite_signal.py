"""Custom operators of signal processing: their options, the rules that files can break, and what is left undefined."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from flatbuffers import flexbuffers
from tflite.TensorType import TensorType

from mlfbuild.core.errors import InputFileError, MlfError, UnsupportedModelError
from mlfbuild.native.frontends.tflite import parse_tflite
from mlfbuild.native.graph.nodes import evaluate
from support.board_cases import wrong_networks
from support.examples import first_on_push
from support.host_c import run_many_on_host
from support.native import compile_bytes
from support.oracle import tflite_micro_cases, tflite_micro_run
from support.signal_networks import FOURIER_TYPES
from support.tflite_builder import Network


def window(**options: float) -> Network:
    net = Network()
    source, output = net.input((2, 4), dtype="int16"), net.activation((2, 4), dtype="int16")
    net.custom("SignalWindow", [source, net.integers([1, 2, 3, 4], "int16")], [output], **options)
    return net


def energy(start: int, end: int) -> Network:
    net = Network()
    source, output = net.input((8,), dtype="int16"), net.activation((4,), dtype="uint32")
    net.custom("SignalEnergy", [source], [output], start_index=start, end_index=end)
    return net


def filter_bank(
    starts: list[int], firsts: list[int], widths: list[int], weights: Sequence[int] = (1, 1, 1, 1)
) -> Network:
    net = Network()
    constants = [net.integers(values, "int16") for values in (weights, weights[::-1], starts, firsts, widths)]
    output = net.activation((2,), dtype="uint64")
    net.custom("SignalFilterBank", [net.input((5,), dtype="uint32"), *constants], [output], num_channels=2)
    return net


def delay(length: int) -> Network:
    net = Network()
    net.custom("SignalDelay", [net.input((2, 3), dtype="int16")], [net.activation((2, 3), dtype="int16")],
               delay_length=length)  # fmt: skip
    return net


def pcan(gains: int) -> Network:
    net = Network()
    sources = [net.input((3,), dtype="uint32") for _ in range(2)]
    output = net.activation((3,), dtype="uint32")
    net.custom("SignalPCAN", [*sources, net.integers([0] * gains, "int16")], [output], snr_shift=6)
    return net


def framer(size: int, step: int, *, prefill: bool = False) -> Network:
    net = Network()
    frames = net.activation((4 // max(step, 1) or 1, max(size, 1)), dtype="int16")
    outputs = [frames, net.activation((), dtype="bool")]
    options = {"frame_size": size, "frame_step": step, "prefill": prefill}
    net.custom("SignalFramer", [net.input((4,), dtype="int16")], outputs, **options)
    return net


def stacker(left: int, right: int, step: int) -> Network:
    net = Network()
    outputs = [net.activation((2 * min(left + right + 1, 99),), dtype="int16"), net.activation((), dtype="bool")]
    options = {"num_channels": 2, "stacker_left_context": left, "stacker_right_context": right, "stacker_step": step}
    net.custom("SignalStacker", [net.input((2,), dtype="int16")], outputs, **options)
    return net


def overlap_add(step: int, dtype: int = TensorType.INT16) -> Network:
    net = Network()
    source, output = net.input((3, 4), dtype="int16"), net.activation((max(3 * step, 1),), dtype="int16")
    net.custom("SignalOverlapAdd", [source], [output], T=dtype, frame_step=step)
    return net


def fourier(name: str, length: int, sizes: tuple[int, int], dtype: int = TensorType.INT16) -> Network:
    net = Network()
    source, output = (add((size,), dtype="int16") for add, size in zip((net.input, net.activation), sizes, strict=True))
    net.custom(name, [source], [output], T=dtype, fft_length=length)
    return net


def rfft(length: int, dtype: int = TensorType.INT16) -> Network:
    return fourier("SignalRfft", length, (6, length + 2), dtype)


def irfft(length: int, samples: int) -> Network:
    return fourier("SignalIrfft", length, (length + 2, samples))


def refused(net: Network) -> MlfError:
    with pytest.raises(MlfError) as caught:
        parse_tflite(net.build(), "net", "net.tflite")
    return caught.value


def with_bytes(data: bytes) -> Network:
    net = window(shift=3)
    net.operators[0].custom_options = data
    return net


def unsigned(value: int) -> bytes:
    """Return an option that TensorFlow Lite Micro would read as a negative number."""
    builder = flexbuffers.Builder()
    with builder.Map():
        builder.Key("shift")
        builder.UInt(value)
    return bytes(builder.Finish())


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (bytes(flexbuffers.Dumps({"shift": 1.5})), "its options are not the int32 numbers shift"),
        (bytes(flexbuffers.Dumps({"shift": 1 << 31})), "its options are not the int32 numbers shift"),
        (bytes(flexbuffers.Dumps({"Shift": 3})), "its options are not the int32 numbers shift"),
        (bytes(flexbuffers.Dumps({"shift": 3, "zoom": 1})), "its options are not the int32 numbers shift"),
        (unsigned(3), "its options are not the int32 numbers shift"),
        (bytes(flexbuffers.Dumps([3])), "an offset or a length leads out of the file"),
        (b"", "an offset or a length leads out of the file"),
        (b"\xff" * 20, "an offset or a length leads out of the file"),
    ],
)
def test_options_of_other_names_and_types_are_refused(data: bytes, reason: str) -> None:
    error = refused(with_bytes(data))
    assert error.reason == reason
    assert "operator 0 (CUSTOM 'SignalWindow') writing 't1'" in str(error.place)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: window(shift=32), "shift 32 is not between 0 and 31"),
        (lambda: energy(0, 5), "end_index 5 is not between 0 and 4"),
        (lambda: energy(3, 2), "start_index 3 is not between 0 and 2"),
        (lambda: filter_bank([0, 0, 4], [0, 0, 0], [1, 1, 2]), "a band is outside 't6' uint32[5]"),
        (lambda: filter_bank([0, 0, 0], [0, 0, -1], [1, 1, 2]), "a band is outside 't0' int16[4]"),
        (lambda: delay(0), "delay_length 0 is not between 1 and 524288"),
        (lambda: delay(1 << 30), "delay_length 1073741824 is not between 1 and 524288"),
        (lambda: pcan(124), "'t3' int16[124] has fewer than 125 elements"),
        (lambda: framer(6, 0), "frame_step 0 is not positive"),
        (lambda: framer(6, 3), "'t2' int16[4] is not a multiple of frame_step 3"),
        (lambda: framer(6, 8), "frame_step 8 is not between 1 and 4"),
        (lambda: framer(1, 2, prefill=True), "its options need a state of 1 x -1 elements, not one of 0 to 1048576"),
        (lambda: framer(0, 2), "its options need a state of 1 x -2 elements, not one of 0 to 1048576"),
        (lambda: framer(1 << 20, 4), "the number of frames that are not full 262143 is not between 0 and 32767"),
        (lambda: stacker(0, 0, 0), "stacker_step 0 is not between 1 and 1"),
        (lambda: stacker(1, 2, 5), "stacker_step 5 is not between 1 and 4"),
        (lambda: stacker(-1, 2, 1), "stacker_left_context -1 is not between 0 and 32766"),
        (lambda: stacker(0, 1 << 30, 1),
         "its options need a state of 2 x 1073741824 elements, not one of 0 to 1048576"),
        (lambda: rfft(14), "fft_length 14 is not twice a product of 2, 3 and 5"),
        (lambda: rfft(9), "fft_length 9 is not twice a product of 2, 3 and 5"),
        (lambda: rfft(2), "fft_length 2 is not between 4 and 32768"),
        (lambda: rfft(1 << 16), "fft_length 65536 is not between 4 and 32768"),
        (lambda: rfft(4), "the number of samples 6 is not between 1 and 4"),
        (lambda: rfft(8, TensorType.FLOAT32), "T 0 is not the type of 't0' int16[6], int16, int32 or float32"),
        (lambda: irfft(8, 6), "'t1' int16[6] should have the shape [8]"),
        (lambda: fourier("SignalIrfft", 8, (12, 8)), "'t0' int16[12] should have the shape [10]"),
        (lambda: overlap_add(0), "frame_step 0 is not between 1 and 4"),
        (lambda: overlap_add(5), "frame_step 5 is not between 1 and 4"),
        (lambda: overlap_add(2, TensorType.FLOAT32), "T 0 is not the type of 't0' int16[3, 4], int16 or float32"),
        (lambda: overlap_add(2, TensorType.INT32), "T 2 is not the type of 't0' int16[3, 4], int16 or float32"),
    ],
)  # fmt: skip
def test_attributes_out_of_range_are_refused(make: Callable[[], Network], reason: str) -> None:
    assert refused(make()).reason == reason


def test_a_band_without_elements_may_begin_anywhere() -> None:
    parse_tflite(filter_bank([0, 0, 99], [0, 0, -1], [1, 1, 0]).build(), "net", "net.tflite")


def test_other_signal_operators_are_refused_by_name() -> None:
    net = window(shift=3)
    net.operators[0].custom_code = "SignalMfcc"
    error = refused(net)
    assert isinstance(error, UnsupportedModelError)
    assert (error.code, error.reason) == ("operator-unsupported", "operator CUSTOM 'SignalMfcc' is not supported")


def test_other_operators_refuse_uint32() -> None:
    net = Network()
    net.unary("ABS", net.input((3,), dtype="uint32"), dtype="uint32")
    assert refused(net).code == "type-unsupported"


def test_energies_outside_the_range_are_0() -> None:
    model, values = energy(1, 3).build(), np.array([5, 6, -7, 8, 1, -32768, 2, 3], np.int16)
    expected = np.array([0, 113, 1 + (1 << 30), 0], np.uint32)
    graph = parse_tflite(model, "net", "net.tflite")
    np.testing.assert_array_equal(evaluate(graph, {graph.inputs[0]: values})[graph.outputs[0]], expected)
    np.testing.assert_array_equal(tflite_micro_run(model, [values])[0][1:3], expected[1:3])
    library = compile_bytes(model, "net")
    np.testing.assert_array_equal(run_many_on_host([(library, library.modules[0], (values,))])[0][0], expected)


@pytest.mark.parametrize(("dtype", "cpu"), [("int16", "cortex-m3"), ("int16", "cortex-m4"), ("int32", "cortex-m4")])
def test_fourier_transforms_of_the_lengths_of_audio(dtype: str, cpu: str) -> None:
    """A square wave at full scale overflows the sums of integers, which wrap around."""
    lengths, jobs, expected = (20, 480), [], []
    for length in lengths:
        wave = np.where(np.sin(np.arange(length) * 2 * np.pi * 3 / length + 0.1) < 0, -1.0, 1.0)
        samples = np.where(wave < 0, np.iinfo(dtype).min, np.iinfo(dtype).max)
        for name, sizes in (("SignalRfft", (length, length + 2)), ("SignalIrfft", (length + 2, length))):
            net = Network()
            source, output = net.input(sizes[:1], dtype=dtype), net.activation(sizes[1:], dtype=dtype)
            net.custom(name, [source], [output], T=FOURIER_TYPES[dtype], fft_length=length)
            run = (np.resize(samples, sizes[0]).astype(dtype),)
            library = compile_bytes(net.build(), f"{name.lower()}{length}", cpu)
            graph = parse_tflite(net.build(), "net", "net.tflite")
            jobs.append((library, library.modules[0], run))
            expected.append(tflite_micro_cases(net.build(), [run])[0][0])
            np.testing.assert_array_equal(evaluate(graph, {graph.inputs[0]: run[0]})[graph.outputs[0]], expected[-1])
    for got, wanted in zip(run_many_on_host(jobs), expected, strict=True):
        np.testing.assert_array_equal(got[0], wanted)


@pytest.mark.parametrize(
    ("cpu", "optimise"), first_on_push([("cortex-m55", "-O1"), ("cortex-m55", "-O0"), ("cortex-m4", "-O2")])
)
def test_fourier_transforms_on_the_board(cpu: str, optimise: str, tmp_path: Path, tool: Callable[[str], str]) -> None:
    """Sizes with a stage of 2, without one, and with stages of 3 and 5."""
    jobs = []
    for length in (64, 128, 240):
        for name, sizes in (("SignalRfft", (length, length + 2)), ("SignalIrfft", (length + 2, length))):
            model = fourier(name, length, sizes).build()
            random = np.random.default_rng(length)
            values = [random.choice([-32768, 32767], sizes[:1]), random.integers(-32768, 32768, sizes[0])]
            runs = [(value.astype(np.int16),) for value in values]
            library = compile_bytes(model, f"{name.lower()}{length}", cpu)
            jobs += [(library, run, wanted) for run, wanted in zip(runs, tflite_micro_cases(model, runs), strict=True)]
    assert wrong_networks(jobs, cpu, tmp_path, tool, optimise=optimise) == []


@pytest.mark.parametrize("cpu", ["cortex-m3", "cortex-m4", "cortex-m55"])
def test_kernels_of_each_core_equal_tensorflow_lite_micro(cpu: str) -> None:
    weights = [-30000, 32767, -32768, 5, 6, 7, -1, 30000, 9, -32768, 11]
    samples = np.array([[*weights[::-1]], [-32768] * 11], np.int16)
    net = Network()
    source, output = net.input(samples.shape, dtype="int16"), net.activation(samples.shape, dtype="int16")
    net.custom("SignalWindow", [source, net.integers(weights, "int16")], [output], shift=13)
    spectrum = np.array([-32768, -32768, 3, -4, 32767, 0, -1, 1], np.int16)
    scaled = Network()
    outputs = [scaled.activation((8,), dtype="int16"), scaled.activation((), dtype="int32")]
    scaled.custom("SignalFftAutoScale", [scaled.input((8,), dtype="int16")], outputs)
    banks = [filter_bank([0, 2, 1], [0, 1, 0], [3, 2, 4], [weight, 32767, 3, 4]) for weight in (7, -7)]
    energies = np.array([1, 1 << 31, 0xFFFFFFFF, 77, 5], np.uint32)
    quiet = np.array([-9, 3, 0, 7, -1, 2, 8, -3], np.int16)
    cases = [
        (net, samples),
        (energy(0, 4), spectrum),
        (scaled, spectrum),
        (scaled, quiet),
        *((bank, energies) for bank in banks),
    ]
    libraries = [compile_bytes(each.build(), f"net{at}", cpu) for at, (each, _) in enumerate(cases)]
    jobs = [(library, library.modules[0], (value,)) for library, (_, value) in zip(libraries, cases, strict=True)]
    for got, (each, value) in zip(run_many_on_host(jobs), cases, strict=True):
        for output, wanted in zip(got, tflite_micro_run(each.build(), [value]), strict=True):
            np.testing.assert_array_equal(output, wanted.reshape(output.shape))


@pytest.mark.parametrize(
    ("net", "inputs", "frames"),
    [
        (framer(5, 2), [[1, 2, 3, 4], [5, 6, 7, 8]], [[[0] * 5] * 2, [[1, 2, 3, 4, 5], [3, 4, 5, 6, 7]]]),
        (framer(3, 2), [[1, 2, 3, 4], [5, 6, 7, 8]], [[[0] * 3, [1, 2, 3]], [[3, 4, 5], [5, 6, 7]]]),
        (stacker(1, 1, 2), [[1, 2], [3, 4], [5, 6]], [[0] * 6, [1, 2, 1, 2, 3, 4], [0] * 6]),
    ],
)
def test_outputs_that_are_not_full_are_0(net: Network, inputs: list[list[int]], frames: list[object]) -> None:
    runs = [(np.array(values, np.int16),) for values in inputs]
    library = compile_bytes(net.build(), "net")
    got = run_many_on_host([(library, library.modules[0], run) for run in runs])
    for wanted, (written, full), (_, valid) in zip(frames, got, tflite_micro_cases(net.build(), runs), strict=True):
        np.testing.assert_array_equal(written, np.array(wanted))
        assert bool(full) == bool(valid)


def test_a_file_that_is_damaged_in_its_options_is_an_input_error() -> None:
    assert isinstance(refused(with_bytes(b"\x00\x24\x09")), InputFileError)
