"""``mlfbuild watch``: builds again at each change of a model or of the project file, until Ctrl-C."""

import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from support.command import INTERRUPTED, Folder
from support.firmware_repo import tiny_network, two_layers
from support.processes import wait_for

IMAGE = """\
mlfbuild: 1
targets: {m3: {cpu: cortex-m3, board: mps2-an385}}
models:
  alpha: {source: models/alpha.tflite}
firmware:
  app: {sources: [main.c]}
"""
MAIN = """\
#include "tvmgen_alpha.h"

int main(void) {
  static int8_t in[8], out[4];
  struct tvmgen_alpha_inputs inputs = {in};
  struct tvmgen_alpha_outputs outputs = {out};
  return (int)tvmgen_alpha_run(&inputs, &outputs);
}
"""


class Watching:
    """A running ``mlfbuild watch``; its output is one stream of lines."""

    def __init__(self, folder: Folder, *arguments: str) -> None:
        command = [sys.executable, "-m", "mlfbuild", "watch", *arguments]
        self.process = subprocess.Popen(
            command, cwd=folder.root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.lines: list[str] = []
        self.read = 0
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        self.lines.extend(iter(self.process.stdout.readline, ""))

    def build(self) -> list[str]:
        """Return the lines until the command waits again, without durations."""
        wait_for(lambda: any(line.startswith("watching ") for line in self.lines[self.read :]))
        new = self.lines[self.read :]
        self.read += len(new)
        return [re.sub(r" \(\d+\.\d s\)", "", line.rstrip("\n")) for line in new]

    def stop(self) -> int:
        """Press Ctrl-C."""
        self.process.send_signal(signal.SIGINT)
        self.reader.join(30)
        return self.process.wait(30)


@pytest.fixture
def watch(folder: Folder) -> Iterator[Callable[..., Watching]]:
    started: list[Watching] = []

    def start(*arguments: str) -> Watching:
        started.append(Watching(folder, *arguments))
        return started[-1]

    yield start
    for each in started:
        with each.process as process:
            process.kill()
            each.reader.join()


def test_a_changed_model_is_built_again(folder: Folder, watch: Callable[..., Watching]) -> None:
    watching = watch("--model", "alpha")
    assert re.fullmatch(r"compile alpha for pc: compiled, \d+ files written", watching.build()[0])
    before = (folder.root / "build/mlf/pc/alpha.tar").read_bytes()
    folder.write("models/alpha.tflite", tiny_network(9))
    changed, compiled, waiting = watching.build()
    assert changed == "changed: models/alpha.tflite"
    assert compiled.startswith("compile alpha for pc: compiled, ")
    assert waiting == "watching 3 files, Ctrl-C to end"
    assert (folder.root / "build/mlf/pc/alpha.tar").read_bytes() != before
    good = (folder.root / "mlfbuild.yml").read_text()
    folder.write("mlfbuild.yml", good.replace("host", "hots"))
    assert watching.build()[1].startswith('mlfbuild.yml:3:13: targets.pc.cpu: unknown cpu "hots"')
    folder.write("mlfbuild.yml", good.replace("models/alpha.tflite", "new.tflite"))
    assert "new.tflite: no such file" in watching.build()[1]
    folder.write("new.tflite", tiny_network(1))
    changed, compiled, waiting = watching.build()
    assert (changed, waiting) == ("changed: new.tflite", "watching 3 files, Ctrl-C to end")
    assert compiled.startswith("compile alpha for pc: compiled, ")
    assert watching.stop() == 130
    assert watching.lines[-1] == INTERRUPTED


@pytest.mark.sweep
def test_sizes_of_images_are_compared(
    folder: Folder, watch: Callable[..., Watching], tool: Callable[[str], str]
) -> None:
    tool("arm-none-eabi-gcc")
    folder.write("mlfbuild.yml", IMAGE)
    folder.write("main.c", MAIN)
    watching = watch()
    first = re.fullmatch(r"app for m3: ([\d,]+) bytes of flash, ([\d,]+) bytes of RAM", watching.build()[-2])
    assert first is not None
    folder.write("models/alpha.tflite", two_layers(64))
    second = re.fullmatch(
        r"app for m3: ([\d,]+) bytes of flash \((\+[\d,]+)\), [\d,]+ bytes of RAM \([+-][\d,]+\)", watching.build()[-2]
    )
    assert second is not None
    before, after, change = (int(text.replace(",", "")) for text in (first[1], second[1], second[2]))
    assert after - before == change > 64


def test_options_of_other_verbs_are_refused(folder: Folder) -> None:
    assert folder.run("watch", "--format", "json").status == 2
    assert folder.run("--frozen", "watch").status == 2
