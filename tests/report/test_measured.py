"""Cycles that a device measured, in reports: text, JSON and the page."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mlfbuild.core import InputFileError
from mlfbuild.report.document.read import read_report, report_schema, runs_in
from mlfbuild.report.document.report_files import saved_report
from mlfbuild.report.html import page
from mlfbuild.report.text.runs import run_text
from mlfbuild.verify import Spread
from support.errors import raises
from support.report_sketch import chain, model, modelled
from support.reports import image, others, report
from support.schemas import validator


def measured_report(*, emulated: bool, device: str = "gdb localhost:3333", counter: str = "dwt") -> dict[str, Any]:
    network = modelled(chain(3))
    for at, operator in enumerate(network["operators"]):
        if operator["instructions"] is not None:
            operator["measured"] = {"min": 1000 + at, "median": 1100 + at, "max": 1900 + at}
    network["profile"]["measured"] = {
        "device": device, "counter": counter, "emulated": emulated, "runs": 5, "overhead": 12,
        "cycles": {"min": 31_000, "median": 32_123, "max": 39_000},
    }  # fmt: skip
    return report(image("app for m4", [model("net", [network])], others()))


def test_measured_cycles_are_beside_modelled_ones_in_every_form(tmp_path: Path) -> None:
    made = measured_report(emulated=False)
    validator(report_schema()).validate(made)
    path = tmp_path / "report.json"
    path.write_text(json.dumps(made))
    (run,) = runs_in(read_report(path)["images"][0])
    assert run.measured is not None
    assert (run.measured.total, run.measured.counter, run.measured.runs) == (Spread(31_000, 32_123, 39_000), "dwt", 5)
    assert run.operators[0].measured == Spread(1000, 1100, 1900)
    words = saved_report(path, operators=True).as_text()
    assert (
        "on gdb localhost:3333: 32,123 cycles, median of 5\nmeasured (DWT); modelled for stm32l4r5 at 120 MHz, +-12 %"
        in words
    )
    assert "registers of the device: flash: 3 wait states\n" in run_text(replace(run, settings="flash: 3 wait states"))
    rows = [line.split() for line in words.splitlines() if line.split()[:3] == ["31,000", "32,123", "39,000"]]
    assert [row[3:] for row in rows] == [
        [f"{made['images'][0]['models'][0]['networks'][0]['profile']['modelled']['cycles']:,}", "total"]
    ]
    html = page(made)
    text = re.sub(r"<[^>]+>", " ", html)
    for fact in ("Cycles, measured", "measured on gdb localhost:3333 (DWT), no interrupts", "measured cycles", "1,100"):
        assert fact in text
    assert "modelled, +-12 %" in text
    assert "Counted on the emulator" in text


def test_an_emulator_is_never_called_measured(tmp_path: Path) -> None:
    made = measured_report(emulated=True, device="qemu mps2-an385", counter="systick")
    path = tmp_path / "report.json"
    path.write_text(json.dumps(made))
    texts = (saved_report(path, operators=True).as_text(), re.sub(r"<[^>]+>", " ", page(made)))
    for text in texts:
        assert not re.search(r"measured (on|cycles|\()|Cycles, measured|hardware", text)
    assert "emulated: SysTick counts the time of QEMU, not cycles" in texts[0]
    assert "SysTick of qemu mps2-an385 counts the time of the emulator, not cycles" in texts[1]
    assert "emulated ticks" in texts[1]


@pytest.mark.parametrize("key", ["counter", "emulated", "cycles"])
def test_damaged_measurements_are_refused(tmp_path: Path, key: str) -> None:
    made = measured_report(emulated=False)
    made["images"][0]["models"][0]["networks"][0]["profile"]["measured"][key] = "other"
    path = tmp_path / "report.json"
    path.write_text(json.dumps(made))
    with raises(InputFileError, "report-damaged") as caught:
        read_report(path)
    assert f"measured.{key}" in caught.value.place
