"""The arenas of a network over several memories in reports: places, what they save, the curve, text and page."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from mlfbuild.core import sha256
from mlfbuild.core.errors import InputFileError
from mlfbuild.library import Network
from mlfbuild.library.keys import ArenaMemory
from mlfbuild.native.build import compile_graph
from mlfbuild.report.document.read import mistake_in, networks_in, report_in, report_schema
from mlfbuild.report.html.arenas import arenas_view
from mlfbuild.report.html.document import page
from mlfbuild.report.html.timeline import timelines
from mlfbuild.report.operators.network_sizes import network_json, network_sizes
from mlfbuild.report.sizes.owners import Owner
from mlfbuild.report.text.arenas import all_arenas
from mlfbuild.report.text.markdown import report_markdown
from support import reports
from support.errors import raises
from support.native import request
from support.sketch import face_detector

WAITS = {"dtcm": 0, "sram": 1_000, "ddr": 8_000}


def compiled(waits: dict[str, int], **sizes: int) -> Network:
    given = tuple(ArenaMemory(name, size, f".{name}", waits[name], waits[name]) for name, size in sizes.items())
    wanted = replace(request("net"), memories=given)
    network = compile_graph(face_detector(), wanted, sha256(b"net")).modules[0].network
    assert network is not None
    return network


@pytest.fixture(scope="module")
def network() -> Network:
    return compiled(WAITS, dtcm=1 << 10, sram=3 << 10, ddr=1 << 20)


def json_of(network: Network) -> dict[str, Any]:
    return network_json(network_sizes("net", "aot", network, Owner("net", ()), {}))


def report(network: Network) -> dict[str, Any]:
    return reports.report(
        reports.image(
            "app for m55", [reports.owner("net", reports.piece("run", "code", 4), networks=[json_of(network)])], []
        )
    )


def test_every_tensor_is_in_one_place_of_its_memory(network: Network) -> None:
    found = json_of(network)
    memories = found["arenas"]["memories"]
    assert [each["name"] for each in memories if each["size"]] == ["dtcm", "sram", "ddr"]
    inside = [at for at, tensor in enumerate(network.tensors) if tensor.memory == "arena"]
    scratch = [at for at, operator in enumerate(network.operators) if operator.scratch]
    places = [place for memory in memories for place in memory["places"]]
    assert sorted(at for place in places for at in place["tensors"]) == inside
    assert sorted(place["operator"] for place in places if place["operator"] is not None) == scratch
    for at, memory in enumerate(memories):
        assert all(place["offset"] + place["size"] <= memory["size"] for place in memory["places"])
        assert memory["peak"] == network.usage_of(at)[memory["peak_at"]] == max(network.usage_of(at))
        # Accesses to the slowest memory save nothing, those to the fastest all of its waits.
        rate = {"dtcm": 8, "sram": 7, "ddr": 0}[memory["name"]]
        assert all(place["saved"] == rate * place["accesses"] for place in memory["places"])
        assert memory["saved"] == sum(place["saved"] for place in memory["places"])


def test_curve_has_the_waits_of_plans_with_other_sizes(network: Network) -> None:
    sizes, waits = zip(*((point.size, point.waits) for point in network.curve), strict=True)
    assert sizes[0] == 0 and waits[-1] == 0 and len(sizes) <= 24
    assert list(sizes) == sorted(set(sizes)) and list(waits) == sorted(set(waits), reverse=True)
    arenas = json_of(network)["arenas"]
    assert arenas["waits"] == min(wait for size, wait in zip(sizes, waits, strict=True) if size <= 1 << 10)
    larger = json_of(compiled(WAITS, dtcm=2 << 10, sram=3 << 10, ddr=1 << 20))["arenas"]
    assert arenas["more"] == arenas["waits"] - larger["waits"] > 0
    assert not json_of(compiled(WAITS, dtcm=1 << 20)).get("arenas")


def test_report_is_valid_and_read_again(network: Network) -> None:
    found = report(network)
    assert mistake_in(found, report_schema()) is None
    (again,) = networks_in(found["images"][0]["models"][0])
    assert again.network.tensors == network.tensors and again.network.memories == network.memories
    (text,) = all_arenas(found["images"][0]["models"], places=True)
    assert all(len(line) <= 80 for line in text.splitlines())
    assert (
        f"1 KiB more of dtcm saves {found['images'][0]['models'][0]['networks'][0]['arenas']['more']:,} cycles" in text
    )
    assert "| `sram` | " in report_markdown(found)


def test_page_draws_each_memory_and_the_curve(network: Network) -> None:
    found = json_of(network)
    charts = timelines(found)
    assert [(chart.memory, chart.arena) for chart in charts] == [
        (each["name"], each["size"]) for each in found["arenas"]["memories"]
    ]
    drawn = [mark.tensor for chart in charts for mark in chart.marks if mark.tensor is not None]
    assert sorted(drawn) == [at for at, tensor in enumerate(network.tensors) if tensor.memory == "arena"]
    view = arenas_view(found)
    assert view is not None and len(view.steps) == len(network.curve)
    text = page(report(network))
    assert text.count('class="plot arena marks"') == 3
    assert "in dtcm at 0 to" in text


def test_unknown_speeds_are_no_cycles() -> None:
    found = json_of(compiled(dict.fromkeys(WAITS, 0), dtcm=1 << 10, ddr=1 << 20))
    assert not found["arenas"]["timed"]
    assert "accesses to slower memories" in next(all_arenas([{"name": "net", "networks": [found]}]))


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"fastest": "tcm"}, "arenas.fastest"),
        ({"curve": [[0, 5], [8, 5]]}, "arenas.curve"),
        ({"peak_at": 99}, "arenas.memories[0]"),
        ({"tensors": [99]}, "arenas.memories[0]"),
        ({"operator": 99}, "arenas.memories[0]"),
    ],
    ids=str,
)
def test_report_with_places_that_do_not_exist_is_damaged(
    network: Network, change: dict[str, Any], place: str, tmp_path: Any
) -> None:
    found = json.loads(json.dumps(report(network)))
    arenas = found["images"][0]["models"][0]["networks"][0]["arenas"]
    for changed in (arenas, arenas["memories"][0], arenas["memories"][0]["places"][0]):
        changed.update({key: value for key, value in change.items() if key in changed})
    with raises(InputFileError, "report-damaged") as caught:
        report_in(json.dumps(found).encode(), tmp_path / "r.json")
    assert place in str(caught.value)
