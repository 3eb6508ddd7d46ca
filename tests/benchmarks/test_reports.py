"""Reports of the MLPerf Tiny networks: equal to what size, and a plain reading of the map, find in the images."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from reports import NETWORKS, TARGETS, checked, image_path, instructions, reports, row

from mlfbuild.report.document.read import read_report, report_schema
from support.schemas import validator

_ON_DEVICE = re.compile(
    r"^ (\.(?!debug|comment|ARM\.attributes)\S+)\s+0x[0-9a-f]+\s+0x([0-9a-f]+) \S*\blibmlf_(\w+)\.a\(", re.MULTILINE
)
_IN_RAM = re.compile(r"\.bss|\.data|COMMON")


def sizes_in_map(path: Path, model: str) -> tuple[int, int]:
    """Flash and RAM of a model's library by the lines of the map."""
    text = path.read_text().partition("\nLinker script and memory map\n")[2]
    found = [(name, int(size, 16)) for name, size, library in _ON_DEVICE.findall(text) if library == model]
    flash, ram = (sum(size for name, size in found if bool(_IN_RAM.match(name)) == there) for there in (False, True))
    return flash, ram


def check(folder: Path, networks: Sequence[str], targets: Sequence[str]) -> list[int]:
    """Build the images, compare their reports with what others find, and return the instructions of each model."""
    report = reports(folder, networks, targets)
    validator(report_schema()).validate(report)
    assert read_report(folder / "report.json") == report, "what is written reads back, and its sums hold"
    images = list(checked(folder, report))
    assert len(images) == len(networks) * len(targets)
    for image in images:
        (model,) = image["models"]
        path = image_path(folder, image)
        assert (model["flash"], model["ram"]) == sizes_in_map(path.with_name(f"{path.name}.map"), model["name"])
        parts = [part for network in model["networks"] for part in (*network["operators"], network["rest"])]
        assert sum(part[kind] for part in parts for kind in ("code", "weights", "tables")) == model["flash"]
        assert all(row(image)), "every figure is known"
    return [instructions(image["models"][0]) for image in images]


@pytest.fixture
def ready(shared: Path, tool: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    tool("arm-none-eabi-gcc", "arm-none-eabi-size", "cmake", "ninja", "qemu-system-arm", "gcc")
    monkeypatch.setattr("reports.SHARED", shared)


@pytest.mark.sweep
@pytest.mark.usefixtures("ready")
def test_a_network_on_a_core(tmp_path: Path) -> None:
    check(tmp_path, ["kws"], ["m4"])


@pytest.mark.sweep
@pytest.mark.usefixtures("ready")
def test_every_network_on_every_core(tmp_path: Path) -> None:
    (tmp_path / "again").mkdir()
    first, second = (check(folder, NETWORKS, list(TARGETS)) for folder in (tmp_path, tmp_path / "again"))
    assert first == second and all(first), "counts repeat exactly"
