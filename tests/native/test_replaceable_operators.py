"""``parameters: replaceable`` for every operator and type: networks with other values have the same code."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mlfbuild.core import InputFileError, UnsupportedModelError
from mlfbuild.library import Library, aligned_parts, read_blob
from mlfbuild.native.frontends.tflite import parse_tflite
from mlfbuild.native.graph.nodes import evaluate_in_turn
from mlfbuild.native.printing.blob_layout import Blob
from support import host_c, hybrid_networks, int16_networks, unsigned_networks
from support.board_cases import wrong_networks
from support.drawing import Array, Case
from support.host_c import SANITIZERS, build, run, run_many_on_host, write_tree
from support.native import compile_network, files_of
from support.networks import OPERATORS, OPERATORS_AND_TYPES, TYPES, drawn, judged
from support.oracle import assert_equal, tflite_micro_cases
from support.other_values import with_other_values
from support.streaming_networks import STREAMING, drawn_streams
from support.wake_word import frames, wake_word

OPTIONS = {"parameters": "replaceable"}
ALLOWED = {"host/parameters/net.bin", "host/src/net_lib1.c"}
MARKED = (
    "BATCH_MATMUL", "CONV_2D", "GATHER", "L2_NORMALIZATION", "LOGISTIC", "MEAN", "PAD", "QUANTIZE", "RELU6",
    "RESIZE_BILINEAR", "SQRT", "TFLite_Detection_PostProcess", "TOPK_V2",
)  # fmt: skip
"""Operators with numbers in their calls, indices, or no values."""
TOGETHER = 50
"""Networks in one program."""


def compiled(model: bytes, name: str = "net", cpu: str = "cortex-m4") -> Library:
    return compile_network(parse_tflite(model, name, name), cpu, options=OPTIONS)


def changes(model: bytes, cpu: str, seeds: int) -> Iterator[set[str]]:
    """Yield the files that differ between ``model`` and so many networks with other values."""
    base = files_of(compiled(model, cpu=cpu))
    left = seeds
    for seed in range(10 * seeds):
        try:
            other = files_of(compiled(with_other_values(model, seed), cpu=cpu))
        except (InputFileError, UnsupportedModelError):  # scales that the operator does not permit
            continue
        yield {path for path in base | other if base.get(path) != other.get(path)}
        left -= 1
        if left == 0:
            return


def kinds(count: int, types: Collection[str]) -> Iterator[tuple[str, list[bytes]]]:
    """Yield networks of each operator and type, and whole ones of int16, of uint8 and over float32."""
    for operator, dtype in [each for each in OPERATORS_AND_TYPES if each[1] in types]:
        yield f"{operator} {dtype}", [case.model for case in drawn(operator, dtype, count)]
    for name in ("conv2d", "pointwise", "fully_connected", "depthwise", "network"):
        yield f"int16 {name}", [getattr(int16_networks, name)(seed).model for seed in range(count)]
    for kind in unsigned_networks.OWN:
        yield kind, [case.model for case in unsigned_networks.own(kind, count)]
    for kind in STREAMING:
        yield kind, [stream.model for stream in drawn_streams(kind, count)]
    yield "wake word", [wake_word("int8")]
    yield "hybrid", [make(np.random.default_rng(1)).model for make in hybrid_networks.KINDS.values()]


def check_code(cpu: str, count: int, seeds: int, types: Collection[str]) -> None:
    for name, models in kinds(count, types):
        found = [each for model in models for each in changes(model, cpu, seeds)]
        assert found and all(each <= ALLOWED for each in found), name


def test_code_does_not_depend_on_values() -> None:
    check_code("cortex-m4", 1, 1, {"int8", "int16"})


@pytest.mark.sweep
@pytest.mark.parametrize("cpu", ["host", "cortex-m0plus", "cortex-m4", "cortex-m55"])
def test_no_code_depends_on_values(cpu: str) -> None:
    check_code(cpu, 3, 2, {dtype for _, dtype in OPERATORS_AND_TYPES})


def judgements(operators: Sequence[str], count: int, cpu: str) -> Iterator[tuple[Library, Case, list[Array]]]:
    for operator in operators:
        for dtype in TYPES[operator]:
            for index, case in enumerate(drawn(operator, dtype, count)):
                try:
                    right = judged(operator, dtype, case)
                except RuntimeError:  # TensorFlow Lite Micro does not take every network that TFLite's rules allow
                    continue
                yield compiled(case.model, f"{operator.lower()}_{dtype}_{index}", cpu), case, right


def check_numbers(operators: Sequence[str], count: int) -> None:
    found = list(judgements(operators, count, "cortex-m4"))
    results = run_many_on_host([(library, library.modules[0], case.inputs) for library, case, _ in found])
    for (library, _, wanted), got in zip(found, results, strict=True):
        for value, right in zip(got, wanted, strict=True):
            # GELU of a negative number is the small difference of numbers near 1.
            assert_equal(value, right, library.modules[0].name, 1.0)


def test_values_in_a_blob_give_the_reference() -> None:
    check_numbers(MARKED, 1)


@pytest.mark.sweep
@pytest.mark.parametrize("operator", OPERATORS)
def test_values_in_a_blob_give_the_reference_for_many_cases(operator: str) -> None:
    check_numbers([operator], 20)


@pytest.mark.sweep
@pytest.mark.parametrize("cpu", ["cortex-m4", "cortex-m55", "cortex-m0plus"])
def test_values_in_a_blob_on_the_board(cpu: str, tmp_path: Path, tool: Callable[[str], str]) -> None:
    jobs = [(library, case.inputs, right) for library, case, right in judgements(list(OPERATORS), 1, cpu)]
    assert wrong_networks(jobs, cpu, tmp_path, tool) == []


def garbage(random: np.random.Generator, content: bytes) -> bytes:
    """Return other bytes, or extreme words, or ``content`` with damage."""
    size = len(content)
    data = random.integers(0, 256, size, dtype=np.uint8)
    kind = random.integers(3)
    if kind == 1:
        words = (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x40000000, 0xFFFF0000, 0x7F800000, 0x7FC00000)
        data = random.choice(np.array(words, np.uint32), size // 4).view(np.uint8)
    elif kind == 2:
        data = np.where(random.random(size) < 0.2, data, np.frombuffer(content, np.uint8))
    return data.tobytes()


@pytest.mark.sweep
@pytest.mark.parametrize("cpu", ["host", "cortex-m4"])
@pytest.mark.parametrize("seed", range(2))
def test_no_values_lead_outside_memory(cpu: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those of a blob whose CRC-32 is right; whether they overflow does not matter."""
    random, made = np.random.default_rng(seed), Blob.data

    def data(self: Blob, model_id: str) -> bytes:
        blob = read_blob(made(self, model_id), "net.bin")
        return replace(blob, content=garbage(random, blob.content)).data()

    monkeypatch.setattr(Blob, "data", data)
    monkeypatch.setattr(host_c, "_TRAPS", ("-fsanitize=address",))
    cases = [case for operator, dtype in OPERATORS_AND_TYPES for case in drawn(operator, dtype, 1)]
    cases += [next(unsigned_networks.own(kind, 1)) for kind in unsigned_networks.OWN]
    streams = [stream for kind in STREAMING for stream in drawn_streams(kind, 2)]
    every = [(case.model, [case.inputs]) for case in cases] + [(stream.model, stream.runs) for stream in streams]
    for first in range(0, len(every), TOGETHER):
        jobs = []
        for at, (model, runs) in enumerate(every[first : first + TOGETHER]):
            library = compiled(model, f"net{at}", cpu)
            jobs += [(library, library.modules[0], run) for run in runs]
        assert len(host_c.run_many_on_host(jobs)) == len(jobs)


def test_states_begin_with_values_of_the_blob() -> None:
    streams = [stream for kind in STREAMING for stream in drawn_streams(kind, 2)]
    libraries = [compiled(stream.model, f"net{at}") for at, stream in enumerate(streams)]
    runs = [(library, run) for library, stream in zip(libraries, streams, strict=True) for run in stream.runs]
    expected = [outputs for stream in streams for outputs in tflite_micro_cases(stream.model, stream.runs)]
    results = run_many_on_host([(library, library.modules[0], run) for library, run in runs])
    for (library, _), got, wanted in zip(runs, results, expected, strict=True):
        for value, right in zip(got, wanted, strict=True):
            assert_equal(value, right, library.modules[0].source_text.decode(), operands=1)


MAIN = r"""
#include <stdio.h>
#include <string.h>
#include "tvmgen_net.h"

static _Alignas(16) uint8_t blob[1 << 16], workspace[TVMGEN_NET_WORKSPACE_SIZE];
static _Alignas(MLF_NET_STATE_ALIGNMENT) uint8_t kept[MLF_NET_STATE_SIZE], other[MLF_NET_STATE_SIZE];

int main(void) {
  FILE *file = fopen("blob", "rb");
  const size_t size = fread(blob, 1, sizeof blob, file);
  uint8_t results[MLF_NET_PARAMETERS_RESULTS_SIZE];
  struct tvmgen_net_inputs in;
  struct tvmgen_net_outputs out = {results};
  if (mlf_net_reset(kept) != 0) return 2;
  memcpy(other, kept, sizeof other);
  printf("%d", (int)mlf_net_test_parameters(blob, size, workspace, other, results));
  if (mlf_net_use_parameters(blob, size) != 0 || mlf_net_reset(kept) != 0) return 3;
  for (uint8_t *vector = blob + MLF_NET_PARAMETERS_SIZE; vector < blob + size; vector += 32) {
    in.frame = vector;
    if (mlf_net_run(&in, &out, workspace, kept) != 0) return 4;
    printf(" %d", memcmp(results, vector + 16, TVMGEN_NET_T24_SIZE) != 0);
  }
  return 0;
}
"""


def test_a_blob_is_tested_with_its_own_state(tmp_path: Path) -> None:
    other = with_other_values(wake_word("int8"), 3)
    graph, runs = parse_tflite(other, "net", "net"), frames("int8", 12)
    made = evaluate_in_turn(graph, [{"frame": frame} for (frame,) in runs])
    outputs = [values[graph.outputs[0]] for values in made]
    assert len({output.tobytes() for output in outputs}) > 6
    vectors = [
        aligned_parts([frame.tobytes(), output.tobytes()]) for (frame,), output in zip(runs, outputs, strict=True)
    ]
    blob = read_blob(files_of(compiled(other))["host/parameters/net.bin"], "net.bin")
    write_tree(compiled(wake_word("int8")), tmp_path)
    program = build(tmp_path, MAIN, SANITIZERS)
    (tmp_path / "blob").write_bytes(replace(blob, vectors=tuple(vectors)).data())
    assert run([program], tmp_path).split() == ["0", *12 * ["0"]]
    vectors[9] = vectors[9][:16] + bytes([vectors[9][16] ^ 1]) + vectors[9][17:]
    (tmp_path / "blob").write_bytes(replace(blob, vectors=tuple(vectors)).data())
    assert run([program], tmp_path).split()[0] == "-12"
