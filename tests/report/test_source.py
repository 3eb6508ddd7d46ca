"""Attributes of operators from the model's file."""

from pathlib import Path

import pytest

from mlfbuild.jobs import CompileJob, load, target_jobs
from mlfbuild.report import source_facts
from support.firmware_repo import tiny_network

PROJECT = "mlfbuild: 1\ntargets: {{m4: {{cpu: cortex-m4}}}}\nmodels: {{net: {{source: {source}}}}}\n"


def job_of(folder: Path, source: Path) -> CompileJob:
    (folder / "mlfbuild.yml").write_text(PROJECT.format(source=source))
    return target_jobs(load(folder / "mlfbuild.yml"))[0].models[0]


def test_facts_of_a_small_network(tmp_path: Path) -> None:
    (tmp_path / "net.tflite").write_bytes(tiny_network(1))
    job = job_of(tmp_path, tmp_path / "net.tflite")
    facts = source_facts(job)
    (node,) = facts.nodes.values()
    assert node["operator"] == "FULLY_CONNECTED" and node["attributes"]["activation"] == "none"
    assert [tensor["role"] for tensor in node["tensors"]] == ["input", "weights", "bias", "output"]
    source, weights = node["tensors"][:2]
    assert source["scale"][0] == pytest.approx(0.05) and source["zero_point"] == [3, 3]
    assert weights["channels"] == 1
    (tmp_path / "net.tflite").unlink()
    assert source_facts(job).nodes == {}, "a lost file has no facts"


def test_facts_of_a_convolution_and_of_a_chain(tmp_path: Path, shared: Path) -> None:
    facts = source_facts(job_of(tmp_path, shared / "models/kws_int8.tflite"))
    first = next(iter(facts.nodes.values()))
    assert first["attributes"] | {"padding": None} == {
        "kernel": [10, 4], "stride": [2, 2], "dilation": [1, 1], "padding": None, "activation": "relu",
    }  # fmt: skip
    assert first["attributes"]["padding"] == [[4, 5], [1, 1]]
    assert [tensor["channels"] for tensor in first["tensors"]][1] == 64
    pool = next(node for node in facts.nodes.values() if node["operator"] == "AVERAGE_POOL_2D")
    assert pool["attributes"]["kernel"] == [25, 5]
    names = [*facts.nodes][:2]
    assert [node["name"] for node in facts.of_operator(" + ".join(names))] == names
    assert facts.of_operator("unknown") == []
