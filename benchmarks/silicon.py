"""Compare modelled cycles with latencies that others measured on silicon, for the same code.

    python benchmarks/silicon.py --images DIR [--points TEXT ...]     model the images, print a table
    python benchmarks/silicon.py --images DIR --update                and write it to benchmarks/results/ and docs/

DIR contains one image for each point, `<point>.elf`, linked for the board of its core: public code, built outside of
this repository (docs/performance.md names its sources and options). A function `infer` runs the code once; `main`
calls it. Exit status 1 if a result differs from the committed one or exceeds the limits, 2 if an image cannot be
modelled.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from counting.firmware import REPOSITORY, MeasurementError
from counting.images import Result, model_image
from counting.report import put_into_pages, table

from mlfbuild.core import MlfError
from mlfbuild.targets import MCUS, Mcu
from mlfbuild.timing import modelled_error

COMMITTED = REPOSITORY / "benchmarks/results/silicon.json"
MEAN, MOST = 7.0, 15.0
"""Limits for the networks: mean and largest error in per cent."""


@dataclass(frozen=True)
class Point:
    """Code whose latency on a microcontroller is public."""

    code: str
    part: str
    what: str
    """Network or layer."""
    measured: int
    """Cycles: those that were published, or the median runtime times the clock."""
    data: str = ""
    """The memory of the part that contains the data, if it is not the one for data in the table of parts."""

    @property
    def mcu(self) -> Mcu:
        """The part, with its data in the right memory."""
        mcu = MCUS[self.part]
        return mcu.with_data_in(self.data) if self.data else mcu

    @property
    def name(self) -> str:
        """The stem of its image."""
        return "-".join((*self.code.lower().split(), self.part, *self.what.split()[:1]))


def _runs(code: str, part: str, runs: Mapping[str, tuple[float, int]]) -> Iterator[Point]:
    for network, (seconds, inferences) in runs.items():
        yield Point(code, part, network, round(seconds / inferences * MCUS[part].clock))


NETWORKS = (
    *_runs("CMSIS-NN", "stm32l4r5", {
        "kws": (19.962, 200), "ic": (38.955, 100), "vww": (30.122, 100), "ad": (17.210, 2000),
    }),
    *_runs("TVM", "stm32l4r5", {
        "kws": (14.402, 100), "ic": (38.922, 100), "vww": (33.656, 100), "ad": (11.718, 1000),
    }),
    *_runs("CMSIS-NN", "nrf5340", {
        "kws": (15.217, 200), "ic": (15.809, 50), "vww": (11.602, 50), "ad": (12.533, 2000),
    }),
    *_runs("TFLM 2.3.1", "stm32l4r5", {
        "kws": (18.192, 100), "ic": (70.426, 100), "vww": (60.054, 100), "ad": (10.052, 1000),
    }),
)  # fmt: skip
"""Median of five runs in seconds, and the inferences of a run.

mlcommons/tiny_results_v1.0, closed/OctoML/results; TFLM: mlcommons/tiny_results_v0.5, closed/reference/results.
"""
LAYERS = tuple(
    Point("layer", "alif-e8", what, cycles, data="sram")
    for what, cycles in (
        ("1 conv 3x3 stride 2, 3 to 32 channels, 224x224", 13_754_047),
        ("2 depthwise 3x3, 32 channels, 112x112", 13_715_766),
        ("3 conv 1x1, 32 to 16 channels, 112x112", 4_915_937),
        ("4 conv 1x1, 16 to 96 channels, 112x112", 24_249_462),
        ("5 depthwise 3x3 stride 2, 96 channels, 112x112", 10_286_711),
        ("6 conv 1x1, 96 to 24 channels, 56x56", 2_791_555),
        ("7 conv 1x1, 24 to 144 channels, 56x56", 10_329_014),
        ("8 depthwise 3x3, 144 channels, 56x56", 15_319_785),
    )
)
"""pytorch/executorch issue 17651: the first layers of MobileNetV2, weights in MRAM and activations in SRAM."""
POINTS = (*NETWORKS, *LAYERS)


Results = Mapping[str, Result]
"""By the names of points."""


def error(result: Result, point: Point) -> float:
    """Return how much the modelled cycles differ from the measured ones, in per cent."""
    return 100 * (result.cycles / point.measured - 1)


def mean_error(results: Results, points: Sequence[Point]) -> float:
    """Return the mean of the absolute errors in per cent."""
    return sum(abs(error(results[point.name], point)) for point in points) / len(points)


def exceeded(results: Results) -> Iterator[str]:
    """Yield a line for each limit that the results exceed."""
    if (mean := mean_error(results, NETWORKS)) > MEAN:
        yield f"the mean error is {mean:.1f} %, limit {MEAN:g} %"
    for point in NETWORKS:
        if abs(found := error(results[point.name], point)) > MOST:
            yield f"{point.name}: the error is {found:+.1f} %, limit {MOST:g} %"
    for point in POINTS:
        stated = modelled_error(point.mcu)
        if abs(found := error(results[point.name], point)) > stated:
            yield f"{point.name}: the error is {found:+.1f} %, stated for the part: {stated} %"


def blocks(results: Results) -> Mapping[str, str]:
    """Return the blocks of docs/performance.md by name."""
    return {"silicon": _table("code", NETWORKS, results), "layers": _table("", LAYERS, results)}


def _table(code: str, points: Sequence[Point], results: Results) -> str:
    named = [code, "part", "network"] if code else ["layer"]
    rows = []
    for point in points:
        r = results[point.name]
        names = [point.code, f"`{point.part}`", point.what] if code else [point.what]
        rows.append([*names, _millions(r.cycles), _millions(point.measured), f"{error(r, point):+.1f} %"])
    return table([*named, "modelled", "measured", "error"], rows, right=range(len(named), len(named) + 3))


def _millions(figure: int) -> str:
    return f"{figure / 1e6:.3f}"


def load() -> Results:
    """Return the committed results."""
    return {name: Result(**found) for name, found in json.loads(COMMITTED.read_text()).items()}


def save(results: Results, path: Path = COMMITTED) -> None:
    """Write the results of ``POINTS``, one line each."""
    entries = (f"  {json.dumps(point.name)}: {json.dumps(asdict(results[point.name]))}" for point in POINTS)
    path.write_text("{\n" + ",\n".join(entries) + "\n}\n")


def model_all(points: Sequence[Point], images: Path) -> dict[str, Result]:
    """Model ``points`` and print a line each."""
    titles = ("instr.", "arith.", "memory", "branch", "waits", "cycles", "measured")
    print(" ".join((f"{'point':34}", *(f"{title:>8}" for title in titles))))
    results = {}
    for point in points:
        with tempfile.TemporaryDirectory() as folder:
            results[point.name] = r = model_image(images / f"{point.name}.elf", point.mcu, Path(folder))
        figures = (r.instructions, r.arithmetic, r.memory, r.branches, r.waiting, r.cycles, point.measured)
        millions = " ".join(f"{_millions(figure):>8}" for figure in figures)
        print(f"{point.name:34} {millions} {error(r, point):+6.1f} %", flush=True)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=Path, required=True, metavar="DIR", help="the folder of the images")
    parser.add_argument(
        "--points", nargs="+", metavar="TEXT", help="only points with one of these texts in their names"
    )
    parser.add_argument("--update", action="store_true", help="write the results into the repository")
    options = parser.parse_args()
    points = [point for point in POINTS if not options.points or any(text in point.name for text in options.points)]
    if options.update and options.points:
        parser.error("--update models all points; omit --points")
    try:
        results = model_all(points, options.images)
    except (MeasurementError, MlfError, OSError) as problem:
        print(problem, file=sys.stderr)
        sys.exit(2)
    complete = len(points) == len(POINTS)
    problems = list(exceeded(results)) if complete else []
    if complete:
        print(f"mean error of the networks: {mean_error(results, NETWORKS):.1f} %")
    if options.update:
        save(results)
        put_into_pages(blocks(results))
    elif COMMITTED.exists():
        known = load()
        problems += [
            f"{name}: differs from the committed result" for name, r in results.items() if known.get(name) != r
        ]
    print(*problems, sep="\n", end="\n" if problems else "", file=sys.stderr)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
