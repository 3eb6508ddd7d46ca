"""Builds of a model that does not fit into the memories that it may take, and of one that does."""

from onnx import helper

from support.command import Folder
from support.onnx_models import model

PROJECT = """\
mlfbuild: 1
targets:
  m55: {{cpu: cortex-m55, board: mps3-an547, memories: {{dtcm: {{size: 64 KiB}}, sram: {{waits: 1}}}}}}
models:
  net: {{source: net.onnx, memories: {{dtcm: {dtcm}, sram: {sram}}}}}
"""


def test_shares_that_are_too_small_name_memory_operator_and_bytes(folder: Folder) -> None:
    nodes = [helper.make_node("Softmax", ["x"], ["s"]), helper.make_node("Softmax", ["s"], ["y"])]
    folder.write("net.onnx", model(nodes, [("x", (1, 256))], [("y", (1, 256))]))
    folder.write("mlfbuild.yml", PROJECT.format(dtcm="256", sram="512"))
    refused = folder.run("build", "-q")
    assert refused.status == 4
    (line,) = (line for line in refused.err.splitlines() if "memory 'sram'" in line)
    assert "512 bytes are missing at the peak, operator 0 (SOFTMAX" in line
    folder.write("mlfbuild.yml", PROJECT.format(dtcm="256", sram="1 KiB"))
    assert folder.run("build", "-q").status == 0
