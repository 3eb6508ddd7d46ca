"""``mlfbuild verify --in app.elf --parameters``: an image that ships, with other values than those in it."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mlfbuild.native.frontends.tflite import parse_tflite
from mlfbuild.native.graph.nodes import evaluate_runs
from support.command import Folder
from support.desk import write_desk

UPDATE = Path(__file__).parents[2] / "examples/field-update"


def mlfbuild(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-m", "mlfbuild", *words], cwd=folder, capture_output=True, text=True)


@pytest.mark.sweep
def test_shipped_firmware_with_other_values(tmp_path: Path, tool: Callable[..., str]) -> None:
    tool("arm-none-eabi-gcc", "cmake", "ninja", "qemu-system-arm", "gdb-multiarch", "gcc")
    folder = write_desk(tmp_path / "desk")
    (folder / "tests").mkdir(exist_ok=True)
    shutil.copy(UPDATE / "tests/digits.npz", folder / "tests/digits.npz")
    model = (UPDATE / "models/digits-v2.tflite").read_bytes()
    (folder / "new.tflite").write_bytes(model)
    project, main = folder / "mlfbuild.yml", folder / "src/main.c"
    described = project.read_text().replace("digits: {source", "digits: {parameters: replaceable, source")
    memory = "memory: {flash: {origin: 0x08000000, size: 512 KiB}, ram: {origin: 0x20000000, size: 128 KiB}}"
    project.write_text(described.replace("    runner:\n", f"    runner:\n      {memory}\n"))
    text = main.read_text().replace(
        "    board_init();\n", "    board_init();\n    (void)mlf_digits_use_parameters(0, 0);\n"
    )
    main.write_text(text)
    graph = parse_tflite(model, "net", "net")
    with np.load(folder / "tests/digits.npz") as arrays:
        inputs = arrays["in0"]
    outputs = evaluate_runs(graph, {graph.inputs[0]: inputs})
    np.savez(folder / "new.npz", in0=inputs, out0=outputs[graph.outputs[0]])
    assert mlfbuild(folder, "build", "--target", "nucleo").returncode == 0
    words = ("--for", "digits", "--target", "nucleo", "-o", "new.bin")
    assert mlfbuild(folder, "parameters", "new.tflite", *words).returncode == 0
    image = "build/nucleo/nucleo/nucleo.elf"
    verify = ("verify", "--target", "nucleo", "--in", image, "--parameters", "new.bin")
    done = mlfbuild(folder, *verify, "--vectors", "new.npz")
    assert done.returncode == 0, done.stderr
    assert mlfbuild(folder, *verify, "--vectors", "tests/digits.npz").returncode == 1
    data = bytearray((folder / "new.bin").read_bytes())
    data[500] ^= 1
    (folder / "new.bin").write_bytes(data)
    done = mlfbuild(folder, *verify, "--vectors", "new.npz")
    assert (done.returncode, "returned -10" in done.stderr) == (1, True)


def test_parameters_need_an_image_and_vectors(folder: Folder) -> None:
    assert folder.refused("verify", "--parameters", "b") == (2, "option-needs-another", "--parameters")
    ended = folder.refused("verify", "--in", "app.elf", "--parameters", "b", "--model", "alpha")
    assert ended[:2] == (2, "runner-missing")


def test_blobs_must_be_signed_if_the_project_says_so(folder: Folder) -> None:
    project = folder.root / "mlfbuild.yml"
    text = project.read_text().replace("{cpu: host}", "{cpu: cortex-m4, board: mps2-an386}")
    project.write_text(text + "trust: {signers: allowed_signers, require: [parameters]}\n")
    (folder.root / "allowed_signers").write_text("")
    (folder.root / "blob").write_bytes(b"MLFP")
    words = ("verify", "--in", "app.elf", "--model", "alpha", "--parameters", "blob")
    assert folder.refused(*words, "--vectors", "alpha.npz") == (1, "signature-missing", "blob")
    assert folder.refused(*words) == (2, "vectors-missing", "--parameters blob")


def test_a_model_with_a_blob_needs_no_vectors_in_the_project(folder: Folder) -> None:
    project = folder.root / "mlfbuild.yml"
    project.write_text(project.read_text().replace("{cpu: host}", "{cpu: cortex-m4, board: mps2-an386}"))
    words = ("verify", "--in", "app.elf", "--model", "beta", "--parameters", "blob", "--vectors", "alpha.npz")
    assert folder.refused(*words)[::2] == (5, "blob")
