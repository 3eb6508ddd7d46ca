"""The arenas of a network over several memories, in 80 columns, and their rows for other forms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mlfbuild.core import printable, text_table
from mlfbuild.report.text.columns import fitted_table, used_part

_MOST_PLACES = 20
"""Rows of places without ``verbose``; those that save most come first."""
_PLACES = ("memory", "offset", "bytes", "operators", "accesses", "saved", "tensors")
HEADER = ("memory", "bytes", "of", "", "most in use during", "saved")


def all_arenas(models: Sequence[Mapping[str, Any]], *, verbose: bool = False, places: bool = False) -> Iterator[str]:
    """Yield a table for each network of ``models``, JSON of a report, that has arenas in several memories.

    ``places`` adds what stands where, and the curve; with ``verbose`` all of it.
    """
    for model in models:
        for network in model.get("networks", ()):
            if "arenas" in network:
                title = printable(model["name"])
                title += "" if network["module"] == model["name"] else f" (module {printable(network['module'])})"
                most = None if verbose else _MOST_PLACES if places else 0
                yield "\n".join(_lines(title, network, most))


def _lines(title: str, network: Mapping[str, Any], most: int | None) -> Iterator[str]:
    arenas = network["arenas"]
    yield f"model {title}, memories: accesses wait {waits_text(arenas)} in a run, by estimate"
    rows = list(memory_rows(network))
    yield text_table(rows, header=HEADER, align="lrrrlr")
    yield more_text(arenas)
    if most == 0:
        return
    yield ""
    listed = list(place_rows(network))
    shown = listed[:most]
    yield fitted_table(shown, header=_PLACES, align="lrrrrrl")
    if listed[len(shown) :]:
        yield f"  and {len(listed) - len(shown)} others (-v)"
    yield ""
    steps = [(f"{size:,}", f"{waits:,}") for size, waits in arenas["curve"]]
    header = (f"bytes of {arenas['fastest']}, at least", f"{unit_of(arenas)} of waiting")
    yield text_table(steps, header=header, align="rr")


def unit_of(arenas: Mapping[str, Any]) -> str:
    """Return the unit of what is waited and saved."""
    return "cycles" if arenas["timed"] else "accesses to slower memories"


def waits_text(arenas: Mapping[str, Any]) -> str:
    """Return what the accesses of a run wait, with its unit."""
    return f"{arenas['waits']:,} {unit_of(arenas)}"


def more_text(arenas: Mapping[str, Any]) -> str:
    """Return what more of the fastest memory would save: 1 KiB, and the next step of the curve."""
    fastest, given = arenas["fastest"], next(m["limit"] for m in arenas["memories"] if m["name"] == arenas["fastest"])
    if not arenas["waits"]:
        return f"more of {fastest} saves nothing"
    found = f"1 KiB more of {fastest} saves {arenas['more']:,} {unit_of(arenas)}"
    step = next((each for each in arenas["curve"] if each[0] > given and each[1] < arenas["waits"]), None)
    if step is None or arenas["more"]:
        return found
    return f"{found}; {step[0] - given:,} bytes more save {arenas['waits'] - step[1]:,}"


def memory_rows(network: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each memory, with the cells of ``HEADER``."""
    for each in network["arenas"]["memories"]:
        taken = each["size"] + each["state"]
        at = each["peak_at"]
        during = f"{at} {network['operators'][at]['operator']}" if each["size"] and network["operators"] else ""
        sizes = (f"{taken:,}", f"{each['limit']:,}", used_part(taken, each["limit"]))
        yield each["name"], *sizes, during, f"{each['saved']:,}"


def place_rows(network: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each place in an arena: what saves most first, then by memory and offset."""
    found = [(memory["name"], place) for memory in network["arenas"]["memories"] for place in memory["places"]]
    for name, place in sorted(found, key=lambda each: -each[1]["saved"]):
        span = f"{place['first']}" if place["first"] == place["last"] else f"{place['first']} to {place['last']}"
        figures = (f"{place[key]:,}" for key in ("offset", "size"))
        yield name, *figures, span, f"{place['accesses']:,}", f"{place['saved']:,}", place_title(network, place)


def place_title(network: Mapping[str, Any], place: Mapping[str, Any]) -> str:
    """Return the names of the tensors at a place, or the operator whose scratch memory it is."""
    if place["operator"] is not None:
        return f"scratch of {place['operator']} {network['operators'][place['operator']]['operator']}"
    return ", ".join(network["tensors"][at]["name"].split(";", maxsplit=1)[0] for at in place["tensors"])
