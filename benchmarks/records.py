"""Model the cycles of the MLPerf Tiny networks on the parts of published results, and put both side by side.

    python benchmarks/records.py                     model all and print the table
    python benchmarks/records.py --update            and write benchmarks/results/cycles.json and docs/performance.md
    python benchmarks/records.py --parts stm32l4r5   only some parts; with --update, the others keep their records
    python benchmarks/records.py --peers DIR         and TensorFlow Lite Micro with CMSIS-NN, else its committed cycles
    python benchmarks/records.py --wake-word DIR     and the streaming wake word, else its committed cycles

Each network is modelled three times: with code and weights in flash, with its code in RAM, and with code and weights in
RAM, or in tightly coupled memory if the part has any and they fit. Our figures are modelled (docs/latency.md); those of
the submitters are measured on silicon. The folder of the peers contains images of the same networks, such as
`tflm-m4-kws.elf`, built outside of this repository (docs/performance.md), and `features-m4-sww.elf` with the features
of the wake word. Its folder is `benchmark/training/streaming_wakeword` of a checkout of mlcommons/tiny. Exit status 2
if something cannot be modelled.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

from counting.cycles import PARTS, model_cycles
from counting.firmware import REPOSITORY, MeasurementError
from counting.images import model_image
from counting.measure import NETWORKS
from counting.published import PUBLISHED
from counting.report import put_into_pages, table
from counting.results import save_rows
from counting.wake_word import FEATURES, NETWORK, PUBLISHED as WAKE_WORD, STREAM, model_wake_word
from elftools.elf.elffile import ELFFile

from mlfbuild.core import MlfError
from mlfbuild.library.keys import Placement
from mlfbuild.targets import CPUS, Mcu
from mlfbuild.timing import modelled_error

COMMITTED = REPOSITORY / "benchmarks/results/cycles.json"
_INT8 = tuple(network for network in NETWORKS if not network.endswith("_f32"))
_COLUMNS = ("kws", "ic", "vww", "ad")
_CODE, _WEIGHTS = ".ramfunc", ".data.weights"
PLACEMENTS: Mapping[str, Placement] = {
    "flash": Placement(),
    "code": Placement(code=_CODE),
    "all": Placement(code=_CODE, params=_WEIGHTS),
}
"""Where code and weights are: in flash, code in RAM, both in RAM."""
_ZERO = ("m4-zero", "m55-zero")
"""Cores whose memories never wait, so that the place of code and weights has no effect."""
PEER = "tflm"
"""The place of a record of TensorFlow Lite Micro with CMSIS-NN, whose code and weights are in flash."""
ROWS = {
    "m4-zero": _INT8,
    "stm32l4r5": _INT8,
    "stm32l4r5-single-bank": _INT8,
    "stm32u575": _INT8,
    "stm32u385": _INT8,
    "stm32h7a3": NETWORKS,
    "stm32f746": _INT8,
    "ra8d1": _INT8,
    "stm32g0b1": _INT8,
    "psoc62": _INT8,
    "numaker-m467": _INT8,
    "m55-zero": _INT8,
}
"""Networks by part. The page has a table of those with published cycles, and a plot that also has the ideal cores."""


@dataclass(frozen=True)
class Record:
    """The modelled cycles of a network on a part."""

    part: str
    network: str
    place: str
    """A key of ``PLACEMENTS``, ``PEER``, ``STREAM`` or ``FEATURES``."""
    cycles: int
    """0 if code, weights or arena do not fit."""
    waiting: int
    """Of these, cycles of waiting for memories."""
    floor: int
    """Cycles of reading the constants from flash once; 0 if unknown."""


def load() -> list[Record]:
    """Return the committed records."""
    return [Record(**record) for record in json.loads(COMMITTED.read_text())]


def save(records: Sequence[Record]) -> None:
    """Write the records and the tables of docs/performance.md."""
    save_rows(records, COMMITTED)
    put_into_pages(blocks(records))


def blocks(records: Sequence[Record]) -> Mapping[str, str]:
    """Return the blocks of docs/performance.md by name."""
    return {"records": record_table(records), "wake": wake_word_table(records)}


def modelled_peer(part: str, network: str, images: Path, place: str = PEER) -> Record:
    """Model the image of ``network`` with the code of TensorFlow Lite Micro, or of the features, on ``part``."""
    mcu = PARTS[part]
    core = CPUS[mcu.cpu].core.removeprefix("cortex-")
    with tempfile.TemporaryDirectory() as folder:
        found = model_image(images / f"{place}-{core}-{network}.elf", mcu, Path(folder))
    return Record(part, network, place, found.cycles, found.waiting, 0)


def wake_word_records(parts: Sequence[str], source: Path | None, images: Path | None) -> list[Record]:
    """Model the streaming wake word on those of ``parts`` that have a published latency, if its files are there.

    ``source`` is the folder of the model file, and ``images`` that of the peers. What cannot be modelled without them
    is that of the committed records.
    """
    found = []
    for part in (part for part in parts if part in WAKE_WORD):
        for place in ("flash", STREAM) if source else ():
            cycles = model_wake_word(part, place, source).cycles
            found.append(Record(part, NETWORK, place, cycles.total, cycles.waiting, 0))
        found += [modelled_peer(part, NETWORK, images, FEATURES)] if images else []
    made = {(record.part, record.place) for record in found}
    return found + [r for r in load() if r.network == NETWORK and (r.part, r.place) not in made]


def modelled(part: str, network: str, place: str) -> Record:
    """Model ``network`` on ``part`` with its code and weights in ``place``."""
    mcu = PARTS[part]
    with tempfile.TemporaryDirectory() as folder:
        close = mcu if place == "flash" else _close(mcu)
        found = model_cycles(network, close, folder=Path(folder), placement=PLACEMENTS[place])
        constants, ram = _sizes(found.image)
    fits = place == "flash" or ram <= list(close.memories.values())[1].size
    flash = next(iter(mcu.memories.values()))
    floor = -(-constants // flash.width) * (1 + flash.waits)
    return Record(part, network, place, found.cycles.total if fits else 0, found.cycles.waiting, floor)


def _close(part: Mcu) -> Mcu:
    """Return ``part`` with data in tightly coupled memory instead of SRAM, if it has any."""
    return part.with_data_in("dtcm") if "dtcm" in part.memories else part


def _sizes(image: Path) -> tuple[int, int]:
    """Return the bytes of the network's constants, and those of all static RAM without the stack."""
    with image.open("rb") as file:
        elf = ELFFile(file)
        sizes = {section.name: section["sh_size"] for section in elf.iter_sections()}
        objects = (s for s in elf.get_section_by_name(".symtab").iter_symbols() if s["st_info"]["type"] == "STT_OBJECT")
        constants = sum(s["st_size"] for s in objects if s.name.startswith("tvmgen_") and "workspace" not in s.name)
    return constants, sum(sizes.get(name, 0) for name in (".data", ".bss", ".noinit"))


def record_table(records: Sequence[Record]) -> str:
    """Return the Markdown table of ``records`` from flash beside the published ones, in million cycles.

    A row for each part and type of numbers, a column for each network; records are bold.
    """
    found = {(r.part, r.network): r for r in records if r.place == "flash"}
    rows = []
    for part in PUBLISHED:
        for suffix, what in (("", ""), ("_f32", ", float32")):
            cells = [_cell(found.get((part, f"{network}{suffix}"))) for network in _COLUMNS]
            if any(cells):
                rows.append([f"{part}{what}, ±{modelled_error(PARTS[part])} %", *cells])
    return table(["part", *_COLUMNS], rows, right=())


def _cell(flash: Record | None) -> str:
    if flash is None:
        return ""
    ours, theirs = _million(flash.cycles), PUBLISHED[flash.part].get(flash.network)
    if theirs is None:
        return ours
    # A record is below the published cycles also if the modelled ones are too low by the stated error.
    record = flash.cycles * (100 + modelled_error(PARTS[flash.part])) < theirs.cycles * 1e8
    return f"{f'**{ours}**' if record else ours} / {theirs.cycles:.3f} {theirs.submitter}"


def wake_word_table(records: Sequence[Record]) -> str:
    """Return the Markdown table of the streaming wake word: cycles of one row, with its features, beside published."""
    head = ["part", "features", "window", "row", "features + window", "features + row", "published"]
    found = {(r.part, r.place): r.cycles for r in records if r.network == NETWORK}
    rows = []
    for part, theirs in WAKE_WORD.items():
        features, *ours = (found.get((part, place)) for place in (FEATURES, "flash", STREAM))
        sums = [None if features is None or own is None else features + own for own in ours]
        shown = ["" if cycles is None else _million(cycles) for cycles in (features, *ours, *sums)]
        rows.append([f"{part}, ±{modelled_error(PARTS[part])} %", *shown, f"{theirs.cycles:.3f}"])
    return table(head, rows, right=range(1, 7))


def _has_peer(part: str, network: str, place: str) -> bool:
    return place == "flash" and network in _INT8 and part != "stm32g0b1"  # CMSIS-NN needs DSP instructions


def _million(cycles: int) -> str:
    return f"{cycles / 1e6:.3f}" if cycles else "does not fit"


def _works(parts: Sequence[str], networks: Sequence[str]) -> list[tuple[str, str, str]]:
    """Return part, network and place of the records of ``parts`` and ``networks``."""
    return [
        (part, network, place)
        for part in parts
        for network in ROWS[part]
        if network in networks
        for place in PLACEMENTS
        if place == "flash" or part not in _ZERO
    ]


def with_committed(records: Sequence[Record]) -> list[Record]:
    """Return ``records`` and the committed ones of other parts and networks, in the order of ``ROWS``."""
    found = {(r.part, r.network, r.place): r for r in (*load(), *records)}
    ours = [found[work] for work in _works(list(ROWS), NETWORKS) if work in found]
    return [*ours, *(r for r in found.values() if r.place == PEER or r.network == NETWORK)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=list(NETWORKS))
    parser.add_argument("--peers", type=Path, metavar="DIR", help="the folder of the images of TensorFlow Lite Micro")
    parser.add_argument("--wake-word", type=Path, metavar="DIR", help="the folder of the streaming wake word")
    parser.add_argument("--update", action="store_true", help="write the results into the repository")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    works = _works(options.parts, options.networks)
    try:
        with ProcessPoolExecutor(options.jobs) as pool:
            records = list(pool.map(modelled, *zip(*works, strict=True)))
            if options.peers:
                peers = [(part, network) for part, network, place in works if _has_peer(part, network, place)]
                records += pool.map(modelled_peer, *zip(*peers, strict=True), repeat(options.peers))
        records += wake_word_records(options.parts, options.wake_word, options.peers)
    except (MeasurementError, MlfError, OSError) as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    print(*blocks(records).values(), sep="\n")
    if options.update:
        save(with_committed(records))


if __name__ == "__main__":
    main()
