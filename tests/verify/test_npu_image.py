"""Networks for an Ethos-U in images for mps3-an547: a stand-in for the driver computes what the NPU would."""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mlfbuild.cli.output.invocation import run
from mlfbuild.library.keys import Npu
from support.ethos_u_driver import PROVIDER, npu_calls, write_driver
from support.npu_models import U55_128, U55_256, U65_256, U65_DEDICATED, request_for, require_vela

HASHES = {
    "ad": "87cf24194ef93d1d9b11a591d805526b98008e351655d29883c825c9c106ba24",
    "ic": "3c002613d1b2475eb51dd78dfb85a546c8ae658dee71cf6ade43b022fe205415",
    "kws": "aeea436800704fce17b17292e4412630ad856e9d777c044c64ef748a880bd0ae",
    "vww": "597a384c8c2c8a1276f04702f25013b7838f2f814f1ca7c174d295b73e3d6b7b",
}
"""The networks that are checked with each NPU."""
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


@pytest.mark.sweep
@pytest.mark.parametrize("npu", [U55_128, U55_256, U65_256, U65_DEDICATED], ids=lambda npu: npu.accelerator)
@pytest.mark.parametrize("name", HASHES)
def test_networks_of_mlperf_tiny(tmp_path: Path, shared: Path, name: str, npu: Npu) -> None:
    require_vela()
    source = shared / f"models/{name}_int8.tflite"
    assert hashlib.sha256(source.read_bytes()).hexdigest() == HASHES[name]
    assert verified(tmp_path, source, shared / f"golden/{name}_int8.npz", npu) == 0
