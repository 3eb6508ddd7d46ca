"""The option ``parameters: replaceable``: code that does not depend on trained values, and blobs that replace these."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mlfbuild.core.errors import InputFileError, UnsupportedModelError, UsageError
from mlfbuild.core.files import sha256
from mlfbuild.library import BLOB_HEADER, Library, ParameterBlob, aligned_parts, read_blob
from mlfbuild.library.keys import Placement
from mlfbuild.native import NATIVE
from mlfbuild.native.build import compile_graph
from mlfbuild.native.frontends.tflite import parse_tflite
from mlfbuild.native.graph import Activation, Graph, ops
from mlfbuild.native.graph.nodes import evaluate
from mlfbuild.native.lowering import trained
from support.errors import raises
from support.examples import first_on_push, swept
from support.host_c import SANITIZERS, build, run, run_on_host, write_tree
from support.native import compile_network, files_of as files, request
from support.other_values import with_other_values
from support.sketch import Sketch

REPLACEABLE = {"parameters": "replaceable"}
PLACES = 10_000
"""Random positions of a blob that the sweep damages."""


def compiled(model: bytes, cpu: str = "host") -> Library:
    wanted = replace(request("net", cpu=cpu), options=REPLACEABLE)
    return compile_graph(parse_tflite(model, "net", "net"), wanted, sha256(model))


def model(shared: Path, name: str, seed: int | None = None) -> bytes:
    data = (shared / "models" / f"{name}.tflite").read_bytes()
    return data if seed is None else with_other_values(data, seed)


def blob_of(library: Library) -> ParameterBlob:
    return read_blob(files(library)["host/parameters/net.bin"], "net.bin")


def check_independent(shared: Path, name: str, cpu: str, seeds: int) -> None:
    base = files(compiled(model(shared, name), cpu))
    for seed in range(seeds):
        other = files(compiled(model(shared, name, seed), cpu))
        assert {path for path in base | other if base.get(path) != other.get(path)} == {
            "host/parameters/net.bin",
            "host/src/net_lib1.c",
        }


@pytest.mark.parametrize("cpu", ["host", "cortex-m4"])
def test_code_does_not_depend_on_values(shared: Path, cpu: str) -> None:
    check_independent(shared, "kws_int8", cpu, 1)


@pytest.mark.sweep
@pytest.mark.parametrize("name", ["kws_int8", "ic_int8", "vww_int8", "ad_int8", "ic_f32", "vww_f32", "ad_f32"])
@pytest.mark.parametrize("cpu", ["host", "cortex-m0plus", "cortex-m4", "cortex-m7", "cortex-m55"])
def test_no_code_depends_on_values(shared: Path, name: str, cpu: str) -> None:
    if (name, cpu) == ("vww_int8", "cortex-m0plus"):
        pytest.skip("its values do not fit the kernels for Thumb: portable C, and another structure")
    check_independent(shared, name, cpu, 3)


def families(seed: int) -> Graph:
    """A network of the other operators whose values can be replaced, with scales and zero points from ``seed``."""
    random, s = np.random.default_rng(seed), Sketch("net")

    def tensor(name: str, *shape: int, like: str = "", **given: Any) -> str:
        scale, point = float(random.uniform(0.05, 0.2)), int(random.integers(-100, 100))
        if like:
            quantization = next(each.quantization for each in s.tensors if each.name == like)
            assert quantization is not None
            scale, point = quantization.scale, quantization.zero_point
        return s.tensor(name, *shape, **{"scale": scale, "zero_point": point, **given})

    image, none = (1, 10, 10, 4), ((0, 0), (0, 0))
    s.node(ops.Pad(((0, 0), (1, 1), (1, 1), (0, 0))), tensor("x", 1, 8, 8, 4), tensor("padded", *image, like="x"))
    s.node(ops.Quantize(), "padded", tensor("scaled", *image))
    s.node(ops.Logistic(), "scaled", tensor("gate", *image, scale=1 / 256, zero_point=-128))
    s.node(ops.HardSwish(), "gate", tensor("swish", *image))
    s.node(ops.Mul(), "gate", "swish", tensor("product", *image, scale=0.02))
    s.node(ops.Add(), "product", "swish", tensor("sum", *image))
    s.node(ops.Sub(), "sum", "swish", tensor("less", *image, scale=0.3))
    s.node(ops.Relu(), "less", tensor("relu", *image, scale=0.25, zero_point=int(random.integers(-128, -100))))
    s.node(ops.MaxPool2D((2, 2), (2, 2), none), "relu", tensor("pool", 1, 5, 5, 4, like="relu"))
    mean = ops.AveragePool2D((2, 2), (1, 1), none, Activation.RELU6)
    s.node(mean, "pool", tensor("mean", 1, 4, 4, 4, like="relu"))
    s.node(ops.Concatenation(3), "mean", "mean", tensor("both", 1, 4, 4, 8, like="relu"))
    s.node(ops.Transpose((0, 3, 1, 2)), "both", tensor("turned", 1, 8, 4, 4, like="relu"))
    s.node(ops.Reshape(), "turned", tensor("flat", 1, 128, like="relu"))
    weights = random.integers(-127, 128, (5, 128), np.int8)
    s.node(ops.FullyConnected(), "flat", s.weights("w", 5, 128, data=weights), tensor("scores", 1, 5, scale=5.0))
    s.node(ops.Softmax(1.0), "scores", tensor("y", 1, 5, scale=1 / 256, zero_point=-128))
    return s.graph(["x"], ["y"])


@pytest.mark.parametrize("cpu", ["host", "cortex-m0plus", "cortex-m4", "cortex-m55"])
def test_other_operators_do_not_depend_on_values(cpu: str) -> None:
    base, other = (files(compile_network(families(seed), cpu, options=REPLACEABLE)) for seed in (0, 1))
    differing = {path for path in base | other if base.get(path) != other.get(path)}
    assert differing == {"host/parameters/net.bin", "host/src/net_lib1.c"}


@pytest.mark.parametrize("seed", first_on_push([0, 1, 2]))
def test_other_operators_compute_the_same(seed: int) -> None:
    graph = families(seed)
    inputs = np.random.default_rng(9).integers(-128, 128, (1, 8, 8, 4), np.int8)
    (found,) = run_on_host(compile_network(graph, "host", options=REPLACEABLE), [inputs], sanitize=swept())
    assert np.array_equal(found.reshape(-1), evaluate(graph, {"x": inputs})["y"].reshape(-1))


MAIN = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tvmgen_net.h"

static int32_t answer;
int32_t mlf_net_check_parameters(const void *blob, size_t size) {
  (void)blob;
  return size == 0 ? 1 : answer;
}

static uint8_t *load(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  uint8_t *data = aligned_alloc(16, 1 << 22);
  *size = fread(data, 1, 1 << 22, file);
  fclose(file);
  return data;
}

/* As mlf_net_use_parameters, for a copy that ends where its memory ends, so that sanitizers notice reads behind it. */
static int32_t use(const uint8_t *blob, size_t size) {
  uint8_t *copy = malloc(size + 1);
  memcpy(copy, blob, size);
  const int32_t result = mlf_net_use_parameters(copy, size);
  if (result != 0) free(copy);
  return result;
}

static size_t drawn(size_t below) { return ((size_t)rand() * 32768u + (size_t)rand()) % below; }

int main(int argc, char **argv) {
  size_t size, length;
  static uint8_t *blob, *inputs;
  const long places = atol(argv[3]);
  static _Alignas(16) uint8_t workspace[TVMGEN_NET_WORKSPACE_SIZE], results[MLF_NET_PARAMETERS_RESULTS_SIZE];
  int8_t output[12];
  const uint32_t linked = mlf_net_parameters_version();
  if (argc != 4) return 2;
  blob = load(argv[1], &size);
  inputs = load(argv[2], &length);
  /* Damage each byte of the header, then random positions; and cut the blob at all of these. */
  for (long at = 0; at < 128 + places; at++) {
    const size_t place = at < 128 ? (size_t)at : drawn(size);
    const uint8_t other = (uint8_t)(1 + drawn(255));
    blob[place] ^= other;
    if (use(blob, size) == 0) return 3;
    if (at % 16 == 0 && mlf_net_test_parameters(blob, size, workspace, results) == 0) return 3;
    blob[place] ^= other;
    if (use(blob, place) == 0) return 4;
  }
  if (mlf_net_parameters_version() != linked) return 6;
  answer = 1;
  printf("%d", (int)mlf_net_use_parameters(blob, size));
  answer = 0;
  printf(" %d", (int)mlf_net_use_parameters(NULL, size));
  printf(" %d", (int)mlf_net_use_parameters(blob + 4, size - 4));
  printf(" %d", (int)mlf_net_use_parameters(blob, 127));
  printf(" %d", (int)mlf_net_use_parameters(blob, size - 1));
  for (int word = 0; word < 5; word++) {
    blob[4 * word] ^= 1;
    printf(" %d", (int)mlf_net_use_parameters(blob, size));
    blob[4 * word] ^= 1;
  }
  printf(" %d", (int)mlf_net_test_parameters(blob, size, workspace, results));
  printf(" %d", (int)mlf_net_use_parameters(blob, size));
  printf(" %u\n", (unsigned)mlf_net_parameters_version());
  struct tvmgen_net_inputs in = {inputs};
  struct tvmgen_net_outputs out = {output};
  if (mlf_net_run(&in, &out, workspace) != 0) return 7;
  for (int i = 0; i < 12; i++) printf("%d ", output[i]);
  printf("\n%a %d\n", MLF_NET_INPUT_1_SCALE, (int)MLF_NET_INPUT_1_ZERO_POINT);
  return 0;
}
"""


def check_on_host(shared: Path, folder: Path, places: int) -> None:
    """Give firmware with the values of kws those of another network, and damaged copies of them."""
    library, other = compiled(model(shared, "kws_int8")), compiled(model(shared, "kws_int8", 5))
    inputs = np.random.default_rng(0).integers(-128, 128, (1, 49, 10, 1)).astype(np.int8)
    graph = parse_tflite(model(shared, "kws_int8", 5), "net", "net")
    expected = evaluate(graph, {graph.inputs[0]: inputs})[graph.outputs[0]]
    vectors = tuple(aligned_parts([inputs.tobytes(), expected.tobytes()]) for _ in range(2))
    blob = replace(blob_of(other), version=7, vectors=vectors)
    (folder / "blob").write_bytes(blob.data())
    (folder / "inputs").write_bytes(inputs.tobytes())
    write_tree(library, folder)
    program = build(folder, MAIN, SANITIZERS)
    codes, outputs, quantization = run([program, "blob", "inputs", str(places)], folder).splitlines()
    assert codes == "-11 -1 -3 -5 -5 -6 -7 -9 -10 -8 0 0 7"
    assert outputs.split() == [str(each) for each in expected.reshape(-1)]
    port = other.modules[0].inputs[0]
    assert quantization == f"{float(np.float32(port.scale)).hex().replace('0000000p', 'p')} {port.zero_point}"
    wrong = replace(blob, vectors=(vectors[0], bytes([vectors[0][0] ^ 1]) + vectors[0][1:496] + bytes(16)))
    (folder / "blob").write_bytes(wrong.data())
    assert " -12 0 7" in run([program, "blob", "inputs", "0"], folder).splitlines()[0]


def test_other_values_on_this_machine(shared: Path, tmp_path: Path) -> None:
    check_on_host(shared, tmp_path, 20)


@pytest.mark.sweep
def test_damage_is_never_used(shared: Path, tmp_path: Path) -> None:
    check_on_host(shared, tmp_path, PLACES)


def test_blob_is_the_linked_one(shared: Path) -> None:
    library = compiled(model(shared, "kws_int8"))
    data = files(library)["host/parameters/net.bin"]
    words = "".join(f"0x{data[at : at + 4][::-1].hex()}" for at in range(0, len(data), 4)).replace("0x00000000", "0")
    text = files(library)["host/src/net_lib1.c"].decode()
    array = text[text.index("_parameters[") :].partition("{\n")[2].partition("}")[0]
    assert "".join(array.replace("u,", "").replace("0,", "0").split()).replace(",", "") == words
    assert read_blob(data, "x").data() == data
    assert read_blob(data, "x").model_id == library.modules[0].model_id


def test_damaged_blobs_are_refused() -> None:
    data = ParameterBlob("ab" * 32, "cd" * 32, bytes(64), 3).data()
    assert len(data) == BLOB_HEADER + 64
    assert read_blob(data, "x") == ParameterBlob("ab" * 32, "cd" * 32, bytes(64), 3)
    reasons = {
        b"": "does not begin",
        data[:40]: "40 bytes, and the header alone",
        data[:-1]: "has 191 bytes, and its header says 192",
        data[:4] + b"\2" + data[5:]: "version 2 of the layout",
        data[:-1] + b"\1": "CRC-32",
    }
    for damaged, reason in reasons.items():
        with raises(InputFileError, "parameters-damaged") as caught:
            read_blob(damaged, "x")
        assert reason in caught.value.reason


def test_forms_without_a_blob_are_refused() -> None:
    wanted = replace(request("net"), options=REPLACEABLE)
    combined = {
        "executor": replace(wanted, executor="graph"),
        "options.io": replace(wanted, options=REPLACEABLE | {"io": "arena"}),
        "options.layout": replace(wanted, options=REPLACEABLE | {"layout": "single-file"}),
        "options.interface-api": replace(wanted, options=REPLACEABLE | {"interface-api": "packed"}),
        "options.trace": replace(wanted, options=REPLACEABLE | {"trace": True}),
        "options.trees": replace(wanted, options=REPLACEABLE | {"trees": "code"}),
        "placement.weights": replace(wanted, placement=Placement(weights=".fast")),
    }
    for place, each in combined.items():
        with raises(UsageError, "not-with-replaceable", place=f"net: {place}"):
            NATIVE.outline(each)
    with raises(UsageError, "room-for-linked-trees", place="net: options.tree-room"):
        NATIVE.outline(replace(wanted, options={"tree-room": "4 KiB"}))


def test_outline_names_the_files(shared: Path) -> None:
    outline = NATIVE.outline(replace(request("net"), options=REPLACEABLE))
    names = {str(file.path) for file in outline.modules[0].codegen}
    assert {path for path in files(compiled(model(shared, "kws_int8"))) if "mlfbuild/" not in path} <= names


def test_operators_that_were_not_examined_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trained, "READY", trained.READY - {"l2_normalization.h"})
    s = Sketch("net")
    s.tensor("x", 1, 64, scale=0.1)
    s.node(ops.L2Normalization(), "x", s.tensor("y", 1, 64, scale=1 / 128, zero_point=0))
    with raises(UnsupportedModelError, "parameters-not-replaceable") as caught:
        compile_network(s.graph(["x"], ["y"]), options=REPLACEABLE)
    assert "the kernel l2_normalization" in caught.value.reason
