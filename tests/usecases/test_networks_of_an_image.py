"""Networks of one image in the memories of a board: numbers, addresses, shares, and memories that are too small."""

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

from mlfbuild.core import Diagnostic
from mlfbuild.core.errors import ProjectFileError, UnsupportedModelError
from mlfbuild.jobs import firmware_jobs, load, target_jobs
from mlfbuild.report.sizes.image import read_image
from mlfbuild.targets import BOARDS
from mlfbuild.usecases.build import BuildReport, build_project as build
from mlfbuild.verify.emulator import emulator_command
from support.errors import raises

BOARD = BOARDS["mps3-an547"]
REGIONS = {"dtcm": range(0x30000000, 0x30080000), "sram": range(0x31000000, 0x31400000), "ddr": range(7 << 28, 8 << 28)}
PROJECT = """\
mlfbuild: 1
targets:
  m55:
    cpu: cortex-m55
    board: mps3-an547
    memories:
      dtcm: {{size: {dtcm}, section: .dtcm}}
      sram: {{size: {sram}, waits: 1}}
      ddr: {{size: {ddr}, waits: 8}}
models:
{models}
firmware:
  app: {{sources: [main.c]}}
{more}
"""
CASE = """\
    {{
        static _Alignas(16) int8_t x[MLF_{upper}_X_ELEMENTS], y[MLF_{upper}_Y_ELEMENTS];
        struct tvmgen_{name}_inputs in = {{x}};
        struct tvmgen_{name}_outputs out = {{y}};
        if (fread(x, 1, sizeof x, file) != sizeof x) return 1;
        if (tvmgen_{name}_run(&in, &out) != 0 || tvmgen_{name}_run(&in, &out) != 0) return 2;
        for (unsigned i = 0; i < sizeof y; i++) printf("%d ", y[i]);
    }}
"""
MAIN = """\
#include <stdio.h>
{includes}
int main(int argc, char **argv)
{{
    FILE *file = fopen(argv[argc - 1], "rb");
    for (int round = 0; round < 2; round++) {{
{cases}    }}
    return 0;
}}
"""


@dataclass
class Repo:
    root: Path
    shared: Path

    def write(
        self, models: Sequence[str], keys: Sequence[str] = (), more: str = "", dtcm: str = "64 KiB",
        sram: str = "512 KiB", ddr: str = "4 MiB",
    ) -> None:  # fmt: skip
        """Write a project of ``models``, the first ones with ``keys``, and a program that runs two cases of each."""
        entries, includes, cases = [], [], []
        for at, name in enumerate(models):
            network = name.partition("_")[0]
            (self.root / f"{network}.tflite").write_bytes((self.shared / f"models/{network}_int8.tflite").read_bytes())
            own = keys[at] if at < len(keys) else ""
            entries.append(f"  {name}: {{source: {network}.tflite, interface: {{inputs: [x], outputs: [y]}}{own}}}")
            includes.append(f'#include "tvmgen_{name}.h"\n')
            cases.append(CASE.format(name=name, upper=name.upper()))
        text = PROJECT.format(models="\n".join(entries), more=more, dtcm=dtcm, sram=sram, ddr=ddr)
        (self.root / "mlfbuild.yml").write_text(text)
        (self.root / "main.c").write_text(MAIN.format(includes="".join(includes), cases="".join(cases)))
        golden = [np.load(self.shared / f"golden/{name.partition('_')[0]}_int8.npz") for name in models]
        (self.root / "inputs.bin").write_bytes(b"".join(each["in0"][at].tobytes() for at in (0, 1) for each in golden))
        self.expected = [int(value) for at in (0, 1) for each in golden for value in each["out0"][at].reshape(-1)]

    def build(self) -> BuildReport:
        project = load(self.root / "mlfbuild.yml")
        targets = target_jobs(project)
        return build(targets, firmware_jobs(project, targets))

    @property
    def image(self) -> Path:
        return self.root / "build/m55/app/app.elf"

    def run(self) -> list[int]:
        command = emulator_command(self.image, BOARD, ["inputs.bin"], [])
        done = subprocess.run(command, cwd=self.root, timeout=300, check=True, capture_output=True, text=True)
        return [int(word) for word in done.stdout.split()]

    def arenas(self) -> dict[str, tuple[int, int]]:
        """Return address and size of each workspace."""
        with self.image.open("rb") as file:
            table = ELFFile(file).get_section_by_name(".symtab")
            return {
                each.name: (each["st_value"], each["st_size"])
                for each in table.iter_symbols()
                if each.name.endswith("_workspace") and each["st_size"]
            }

    def shares(self) -> dict[str, dict[str, int]]:
        (target,) = target_jobs(load(self.root / "mlfbuild.yml"))
        return {job.model: {each.name: each.size for each in job.request.memories} for job in target.models}


@pytest.fixture
def repo(tmp_path: Path, shared: Path, tool: Callable[..., str]) -> Repo:
    tool("cmake", "ninja", "arm-none-eabi-gcc", "qemu-system-arm")
    return Repo(tmp_path, shared)


def test_models_that_take_turns_have_one_arena_in_each_memory(repo: Repo) -> None:
    fast = [", weights: {memory: dtcm, copy: 1 KiB, stream: 1 KiB}"]
    repo.write(["kws", "ad", "ad_two"], fast, "share-workspace: [kws, ad]", "6 KiB")
    repo.build()
    assert repo.run() == repo.expected
    arenas = repo.arenas()
    assert set(arenas) == {
        "mlf_shared_workspace", "tvmgen_kws_dtcm_workspace", "tvmgen_ad_workspace", "tvmgen_ad_two_workspace",
    }  # fmt: skip
    # Both begin at the same address, and the third one is not there.
    (kws, large), (ad, small) = arenas["tvmgen_kws_dtcm_workspace"], arenas["tvmgen_ad_workspace"]
    two, _ = arenas["tvmgen_ad_two_workspace"]
    assert kws == ad in REGIONS["dtcm"] and two in REGIONS["dtcm"] and not kws <= two < kws + large
    assert arenas["mlf_shared_workspace"][0] in REGIONS["sram"] and small < large
    image = read_image(repo.image)
    sections = {section.name: section.size for section in image.sections}
    assert "tvmgen_ad_workspace" not in {symbol.name for symbol in image.symbols}
    assert sections[".dtcm.shared.kws"] == large and ".dtcm.shared.ad" not in sections, "shared bytes count once"
    assert sections[".dtcm"] + large <= 6 << 10
    source = (repo.root / "build/mlf/m55/kws/codegen/host/src/kws_lib0.c").read_text()
    assert "mlf_kws_load_weights();" in source and "mlf_kws_copy_wait();" in source


def test_concurrent_models_have_arenas_beside_each_other(repo: Repo) -> None:
    names, keys = ["vww", "kws", "ad", "ad_two"], [", memories: [dtcm]"] * 3
    repo.write(names, keys)
    repo.build()
    apart = repo.arenas()
    repo.write(names, keys, "share-workspace: [vww, kws, ad, ad_two]\nconcurrent: [[kws, ad], [kws, ad_two]]")
    repo.build()
    assert repo.run() == repo.expected
    found = repo.arenas()
    assert {name: size for name, (_, size) in found.items()} == {name: size for name, (_, size) in apart.items()}
    at = {name: range(start, start + size) for name, (start, size) in found.items()}
    vww, kws, ad, two = (at[f"tvmgen_{name}_workspace"] for name in names)
    assert vww.start == kws.start and ad.start == two.start in REGIONS["dtcm"]
    # `vww` never runs with `ad`, but its bytes are also those of `kws`, which does.
    assert vww.stop <= ad.start
    used = sum(each.size for each in read_image(repo.image).sections if each.name.startswith(".dtcm"))
    assert used == len(vww) + len(ad) < sum(map(len, at.values()))


FIVE = ["kws", "ic", "ad", "vww", "ad_graph"]
HOT = ", weights: {memory: dtcm, copy: 1 KiB, stream: 1 KiB}"
GRAPH = ", executor: graph, memories: [ddr]"
TWO_ARENAS = "share-workspace: [ic, vww, kws, ad]\nconcurrent: [[ic, kws], [ic, ad]]"
LIMITED = ", memories: [dtcm, ddr]"
"""The main RAM also has the stack and the variables of the program."""


@pytest.mark.sweep
@pytest.mark.parametrize("turns", ["", "share-workspace: [kws, ic, ad, vww]", "share-workspace: [ic, vww]", TWO_ARENAS])
@pytest.mark.parametrize(
    ("dtcm", "ddr", "limit"),
    [("64 KiB", "64 KiB", ""), ("4 KiB", "64 KiB", ""), ("16 KiB", "256 KiB", LIMITED), ("4 KiB", "192 KiB", LIMITED)],
)
def test_five_networks(repo: Repo, turns: str, dtcm: str, ddr: str, limit: str) -> None:
    keys = [f"{HOT}{limit}", limit, limit, f"{HOT}{limit}", GRAPH]
    repo.write(FIVE, keys, turns, dtcm, ddr=ddr)
    repo.build()
    assert repo.run() == repo.expected
    used = dict.fromkeys(REGIONS, 0)
    for section in read_image(repo.image).sections:
        name = next((name for name, region in REGIONS.items() if section.address in region), "")
        if ".dtcm" in section.name or ".mlf_ddr" in section.name:
            used[name] += section.size
    sizes = {"dtcm": dtcm, "ddr": ddr}
    assert all(0 < used[name] <= int(size.split()[0]) << 10 for name, size in sizes.items())


def test_sizes_cut_until_nothing_fits(repo: Repo) -> None:
    models = ["kws", "ad", "kws_two"]
    repo.write(models, [LIMITED] * 3, dtcm="1 KiB", ddr="24 KiB")
    repo.build()
    assert repo.run() == repo.expected
    repo.write(models, [LIMITED] * 3, dtcm="1 KiB", ddr="12 KiB")
    with raises(UnsupportedModelError, "memories-too-small") as caught:
        repo.build()
    assert caught.value.exit_code == 4 and "memory 'ddr'" in str(caught.value)
    assert "bytes are missing at the peak, operator" in caught.value.reason


def test_shares_follow_from_needs_and_not_from_weights(repo: Repo) -> None:
    repo.write(["kws", "ad", "vww"], [", memories: {dtcm: 8 KiB, sram: 16 KiB}"], dtcm="24 KiB")
    found = repo.shares()
    assert found["kws"] == {"dtcm": 8 << 10, "sram": 16 << 10}
    # The small one has what it needs, and the large one the rest of DTCM.
    assert found["ad"]["dtcm"] == found["ad"]["sram"] == found["ad"]["ddr"] < 1 << 10
    assert found["vww"]["dtcm"] == (16 << 10) - found["ad"]["dtcm"]
    repo.build()
    changed = bytearray((repo.root / "vww.tflite").read_bytes())
    at = len(changed) // 2
    changed[at : at + 64] = bytes(64)
    (repo.root / "vww.tflite").write_bytes(changed)
    assert repo.shares() == found
    assert [each.job.model for each in repo.build().models if each.compiled] == ["vww"]


def test_declared_shares_that_exceed_a_memory_are_refused(repo: Repo) -> None:
    both = [", memories: {dtcm: 40 KiB}"] * 2
    repo.write(["kws", "ad"], both)
    with pytest.raises(ProjectFileError) as caught:
        load(repo.root / "mlfbuild.yml")
    (problem,) = caught.value.problems
    assert isinstance(problem, Diagnostic) and problem.code == "shares-too-large"
    assert problem.place.endswith("models.ad.memories.dtcm")
    repo.write(["kws", "ad"], both, "share-workspace: [kws, ad]")
    assert repo.shares() == {"kws": {"dtcm": 40 << 10}, "ad": {"dtcm": 40 << 10}}
