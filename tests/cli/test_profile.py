"""`mlfbuild profile`: output and exit status."""

import re
from collections.abc import Callable

import numpy as np
import pytest

from support.command import Folder
from support.firmware_repo import tiny_network

PROJECT = """\
mlfbuild: 1
targets: {m4: {cpu: cortex-m4, board: mps2-an386}, own: {cpu: cortex-m7}}
models:
  alpha: {source: alpha.tflite, vectors: alpha.npz}
  beta: {source: beta.tflite}
"""


def test_models_on_boards(folder: Folder, tool: Callable[..., str]) -> None:
    tool("cmake", "ninja", "arm-none-eabi-gcc", "qemu-system-arm", "gcc")
    for seed, name in enumerate(("alpha", "beta")):
        folder.write(f"{name}.tflite", tiny_network(seed))
    np.savez(folder.root / "alpha.npz", in0=np.ones((2, 1, 8), np.int8), out0=np.zeros((2, 1, 4), np.int8))
    folder.write("mlfbuild.yml", PROJECT)
    ended = folder.run("profile", "--target", "m4", status=0)
    alpha, beta = ended.out.rstrip("\n").split("\n\n")
    (first, head, *calls) = alpha.splitlines()
    total = int(first.split(": ")[1].split()[0].replace(",", ""))
    assert first == f"alpha for m4 on mps2-an386: {total:,} instructions for the first case of alpha.npz"
    assert head.split() == ["count", "share", "MACs", "/MAC", "bound", "operator"]
    counts = [int(line.split()[0].replace(",", "")) for line in calls]
    assert (sum(counts[:-1]), counts[-1]) == (total, total)
    assert calls[0].split()[2:] == ["32", f"{counts[0] / 32:.2f}", "16", "FULLY_CONNECTED", "t3"]
    assert [re.split(" {2,}", line)[-1] for line in calls[1:]] == ["between operators", "total"]
    verbose = folder.run("profile", "--model", "alpha", "-v").out
    assert "FULLY_CONNECTED t3  tvmgen_alpha_fully_connected_8_to_4\n" in verbose
    assert beta.splitlines()[0].endswith("instructions for zeros")
    assert folder.run("profile").out == ended.out, "a target without a board is left out, and counts repeat"
    (facts,) = folder.run("profile", "--model", "alpha", "--format", "json").json["profiles"]
    assert (facts["model"], facts["instructions"], facts["inputs"]) == ("alpha", total, "alpha.npz")
    (operator,) = facts["operators"]
    assert (operator["instructions"] + facts["rest"], operator["macs"], operator["bound"]) == (total, 32, 16)
    assert 0 < facts["stack"] < 1024
    facts = folder.run("profile", "--model", "beta", "--target", "m4", "--format", "json").json["profiles"]
    assert [(run["inputs"], run["stack"] > 0) for run in facts] == [("", True)]
    assert folder.refused("profile", "--target", "own") == (1, "nothing-to-profile", "mlfbuild.yml")


@pytest.mark.sweep
def test_profile_uses_the_compiler_of_the_target(
    folder: Folder, tool: Callable[..., str], newest_clang: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tool("cmake", "ninja", "arm-none-eabi-gcc", "qemu-system-arm", "gcc")
    for name, value in newest_clang.items():
        monkeypatch.setenv(name, value)
    folder.write("alpha.tflite", tiny_network(1))
    folder.write(
        "mlfbuild.yml",
        "mlfbuild: 1\ntargets: {own: {cpu: cortex-m4+nofp, board: mps2-an386, c-compiler: clang}}\n"
        "models: {alpha: {source: alpha.tflite}}\n",
    )
    ended = folder.run("profile", "--format", "json", status=0)
    (facts,) = ended.json["profiles"]
    assert facts["operators"][0]["bound"] == 16
    cache = (folder.root / "build/profile/own/alpha/alpha/build/CMakeCache.txt").read_text()
    assert re.search(r"^CMAKE_TOOLCHAIN_FILE:.*cortex-m4\+nofp-clang\.cmake$", cache, re.MULTILINE)
