"""Names from files never steer a terminal or change the order of its text, in results and in messages."""

from dataclasses import replace

import numpy as np
import pytest

from mlfbuild.archive import pack_archive
from mlfbuild.cli.output.live import _text
from mlfbuild.library import Library, TensorInfo
from support.command import Folder
from support.libraries import graph_library
from support.tflite_builder import Network

REPAINT, TURN = "\x1b[2J\x1b]0;kws\a\r", "\u202e\u2066live"
ESCAPES = r"\x1b[2J\x1b]0;kws\x07\r", r"\u202e\u2066live"


def hostile_model(operator: str) -> bytes:
    net = Network()
    x = net.input((1, 4), name="x")
    net.operator(operator, [x], net.activation((1, 4), name=f"{REPAINT}{TURN}"))
    return net.build()


def assert_harmless(text: str) -> None:
    assert all(one.isprintable() or one in "\n\t" for one in text), ascii(text)


@pytest.mark.parametrize("operator", ["HASHTABLE_LOOKUP", "LEAKY_RELU"])
def test_the_place_of_an_error(operator: str, folder: Folder) -> None:
    folder.write("net.tflite", hostile_model(operator))
    ended = folder.run("compile", "net.tflite", "--cpu", "host", "-o", "net.tar")
    assert ended.status in {4, 5}
    assert_harmless(ended.err)
    assert all(escape in ended.err.replace("\\\\", "\\") for escape in ESCAPES), ended.err


def test_results(folder: Folder) -> None:
    (module,) = graph_library().modules
    named = replace(module, inputs=(TensorInfo(f"x{TURN}", "float32", 8),), params={f"p{REPAINT}": np.zeros(1)})
    folder.write("net.tar", pack_archive(Library((named,))))
    for arguments in (["inspect", "net.tar", "-v"], ["validate", "net.tar"], ["compare", "net.tar", "net.tar"]):
        ended = folder.run(*arguments)
        assert_harmless(f"{ended.out}{ended.err}")


def test_a_name_on_the_command_line(folder: Folder) -> None:
    for arguments in ((f"in{TURN}",), ("inspect", f"{REPAINT}.tar"), ("inspect", f"--{TURN}")):
        ended = folder.run(*arguments)
        assert ended.status in {2, 5}
        assert_harmless(ended.err)


def test_rows_of_a_terminal() -> None:
    assert _text(f"compile {TURN}").plain == rf"compile {ESCAPES[1]}"
