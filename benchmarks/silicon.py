"""Compare modelled cycles with latencies that others measured on silicon, for the same code.

    python benchmarks/silicon.py --images DIR [--points TEXT ...]     model the images, print a table
    python benchmarks/silicon.py --images DIR --update                and write it to benchmarks/ and docs/

DIR contains one image for each point, `<point>.elf`, linked for the board of its core: public code, built outside of
this repository (benchmarks/evidence.md names its sources and options). A function `infer` runs the code once; `main`
calls it. For images that vendors flashed, DIR contains clones of their results, and unicorn runs them:

    pip install unicorn
    git -C DIR clone https://github.com/mlcommons/tiny_results_v1.1   (at c32ef94; also v1.2 and v1.3)
    python benchmarks/silicon.py --images DIR --points bosch st-

Exit status 1 if a result differs from the committed one or exceeds the limits, 2 if an image cannot be
modelled.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from itertools import repeat
from pathlib import Path

from counting.firmware import REPOSITORY, MeasurementError
from counting.images import Result, model_image
from counting.points import LAYERS, NETWORKS, POINTS, VENDORS, Point, chosen_for
from counting.report import put_into_pages, table
from counting.vendor_images import model_vendor_image
from counting.vendor_machine import imported

from mlfbuild.core import MlfError
from mlfbuild.targets import CPUS
from mlfbuild.timing import CORE_TIMINGS, modelled_error

COMMITTED = REPOSITORY / "benchmarks/results/silicon.json"
MEAN, MOST = 7.0, 15.0
"""Limits for the networks: mean and largest error in per cent."""

Results = Mapping[str, Result]
"""By the names of points."""


def error(result: Result, point: Point) -> float:
    """Return how much the modelled cycles differ from the measured ones, in per cent."""
    return 100 * (result.cycles / point.measured - 1)


def mean_error(results: Results, points: Sequence[Point]) -> float:
    """Return the mean of the absolute errors in per cent."""
    return sum(abs(error(results[point.name], point)) for point in points) / len(points)


@dataclass(frozen=True)
class Bound:
    """The evidence about a core."""

    points: int
    """Points that are a test."""
    largest: float
    """Largest error of all points of the core, in per cent."""
    error: int
    """The error to state, in per cent."""


def bounds(results: Results) -> dict[str, Bound]:
    """Return the bound of the errors of each core: the 95 % prediction interval of the held-out points.

    It is that of Student's distribution for one more point: mean and standard deviation are those of the points. It is
    not less than the largest error of any point.
    """
    tests: dict[str, list[float]] = {}
    every: dict[str, list[float]] = {}
    for point in (point for point in POINTS if point.name in results):
        for group in (every,) if chosen_for(point) else (every, tests):
            group.setdefault(CPUS[point.mcu.cpu].core, []).append(error(results[point.name], point))
    found = {}
    for core, errors in tests.items():
        spread = _student(len(errors) - 1) * statistics.stdev(errors) * math.sqrt(1 + 1 / len(errors))
        largest = max(map(abs, every[core]))
        found[core] = Bound(len(errors), largest, math.ceil(max(abs(statistics.fmean(errors)) + spread, largest)))
    return found


def _student(freedom: int) -> float:
    """Return the 97.5 % quantile of Student's distribution (Abramowitz and Stegun, 26.7.5)."""
    z = 1.959964
    terms = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96, (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return float(z + sum(term / freedom ** (at + 1) for at, term in enumerate(terms)))


def error_table(results: Results) -> str:
    """Return the table of stated errors in docs/latency.md."""
    evidence = bounds(results)
    rows = []
    for core, timing in CORE_TIMINGS.items():
        found = evidence.get(core)
        cells = ("none", "") if found is None else (str(found.points), f"{found.largest:.1f} %")
        rows.append([core.replace("cortex-m", "Cortex-M").replace("plus", "+"), f"±{timing.error} %", *cells])
    return table(["core", "stated error", "held-out points", "largest error"], rows, right=range(1, 4))


def exceeded(results: Results) -> Iterator[str]:
    """Yield a line for each limit that the results exceed."""
    if (mean := mean_error(results, NETWORKS)) > MEAN:
        yield f"the mean error is {mean:.1f} %, limit {MEAN:g} %"
    for point in NETWORKS:
        if abs(found := error(results[point.name], point)) > MOST:
            yield f"{point.name}: the error is {found:+.1f} %, limit {MOST:g} %"
    for core, found in bounds(results).items():
        if (stated := CORE_TIMINGS[core].error) != found.error:
            yield f"{core}: the evidence says {found.error} %, stated: {stated} %"
    for point in POINTS:
        stated = modelled_error(point.mcu)
        if point.name in results and abs(off := error(results[point.name], point)) > stated:
            yield f"{point.name}: the error is {off:+.1f} %, stated for the part: {stated} %"


def blocks(results: Results) -> Mapping[str, str]:
    """Return the blocks of docs/performance.md and docs/latency.md by name."""
    return {"silicon": _by_network(results), "layers": _table(LAYERS, results), "errors": error_table(results)}


def _by_network(results: Results) -> str:
    """Return a table of errors: a row for each part and vendor, a column for each network, earlier ones behind."""
    networks = ("kws", "ic", "vww", "ad")
    found: dict[tuple[str, str], dict[str, str]] = {}
    for point in (*NETWORKS, *VENDORS):
        if point.name in results:
            before = "" if point.before is None else f" ({point.before:+.1f})"
            cells = found.setdefault((point.part, point.code), {})
            cells[point.what] = f"{error(results[point.name], point):+.1f}{before}"
    rows = [[f"`{part}`", code, *(cells.get(each, "") for each in networks)] for (part, code), cells in found.items()]
    return table(["part", "code", *networks], rows, right=range(2, 6))


def _table(points: Sequence[Point], results: Results) -> str:
    rows = []
    for point in points:
        r = results[point.name]
        rows.append([point.what, _millions(r.cycles), _millions(point.measured), f"{error(r, point):+.1f} %"])
    return table(["layer", "modelled", "measured", "error"], rows, right=range(1, 4))


def _millions(figure: int) -> str:
    return f"{figure / 1e6:.3f}"


def load() -> Results:
    """Return the committed results."""
    return {name: Result(**found) for name, found in json.loads(COMMITTED.read_text()).items()}


def save(results: Results, path: Path = COMMITTED) -> None:
    """Write the results of ``POINTS``, one line each."""
    entries = (
        f"  {json.dumps(point.name)}: {json.dumps(asdict(results[point.name]))}"
        for point in POINTS
        if point.name in results
    )
    path.write_text("{\n" + ",\n".join(entries) + "\n}\n")


def image_of(point: Point, images: Path) -> bytes | None:
    """Return the image of ``point`` below ``images``, from a checkout or a mirror of its repository if it has one.

    ``None`` if there is none.
    """
    if not point.image:
        path = images / f"{point.name}.elf"
        return path.read_bytes() if path.exists() else None
    repository, _, path_there = point.image.partition("/")
    for folder in (images / repository, images / f"mlcommons+{repository}" / "repo"):
        if folder.is_dir():
            command = ["git", "-C", str(folder), "show", f"HEAD:{path_there}"]
            shown = subprocess.run(command, capture_output=True, check=False)
            if shown.returncode != 0:
                return None
            return from_hex(shown.stdout) if point.image.endswith(".hex") else shown.stdout
    return None


def from_hex(text: bytes) -> bytes:
    """Return the bytes of a file in Intel's HEX format from its first address on; gaps are erased flash."""
    found: dict[int, bytes] = {}
    base = 0
    for line in text.split():
        record = bytes.fromhex(line[1:].decode())
        offset, kind, data = int.from_bytes(record[1:3], "big"), record[3], record[4:-1]
        if kind == 0:
            found[base + offset] = data
        elif kind == 4:  # the upper half of addresses
            base = int.from_bytes(data, "big") << 16
    first = min(found)
    image = bytearray(b"\xff" * (max(address + len(data) for address, data in found.items()) - first))
    for address, data in found.items():
        image[address - first : address - first + len(data)] = data
    return bytes(image)


def modelled(point: Point, images: Path) -> tuple[Result | None, str]:
    """Return the result of ``point`` and its settings, or ``None`` and the reason without one."""
    image = image_of(point, images)
    if image is None:
        return None, "no image"
    with tempfile.TemporaryDirectory() as folder:
        if not point.image:
            return model_image(images / f"{point.name}.elf", point.mcu, Path(folder)), ""
        try:
            return model_vendor_image(image, point.mcu, Path(folder))
        except (MeasurementError, MlfError) as problem:
            return None, str(problem)


def model_all(points: Sequence[Point], images: Path, jobs: int) -> dict[str, Result]:
    """Model ``points`` and print a line each; those without an image are left out."""
    titles = ("instr.", "arith.", "memory", "branch", "waits", "cycles", "measured")
    print(" ".join((f"{'point':38}", *(f"{title:>8}" for title in titles))))
    results = {}
    with ProcessPoolExecutor(jobs, max_tasks_per_child=1) as pool:
        for point, (r, note) in zip(points, pool.map(modelled, points, repeat(images)), strict=True):
            if r is None:
                print(f"{point.name:38} {note}", flush=True)
                continue
            results[point.name] = r
            figures = (r.instructions, r.arithmetic, r.memory, r.branches, r.waiting, r.cycles, point.measured)
            millions = " ".join(f"{_millions(figure):>8}" for figure in figures)
            print(f"{point.name:38} {millions} {error(r, point):+6.1f} % {note}", flush=True)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=Path, required=True, metavar="DIR", help="the folder of the images")
    parser.add_argument(
        "--points", nargs="+", metavar="TEXT", help="only points with one of these texts in their names"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--update", action="store_true", help="write the results into the repository; others stay")
    options = parser.parse_args()
    known = load() if COMMITTED.exists() else {}
    points = [point for point in POINTS if not options.points or any(text in point.name for text in options.points)]
    try:
        if any(point.image for point in points):
            imported("unicorn")
        results = model_all(points, options.images, options.jobs)
    except (MeasurementError, MlfError, OSError) as problem:
        print(problem, file=sys.stderr)
        sys.exit(2)
    every = {**known, **results}
    problems = list(exceeded(every))
    print(f"mean error of the networks: {mean_error(every, NETWORKS):.1f} %")
    if options.update:
        save(every)
        put_into_pages(blocks(every))
    else:
        problems += [
            f"{name}: differs from the committed result" for name, r in results.items() if known.get(name) != r
        ]
    print(*problems, sep="\n", end="\n" if problems else "", file=sys.stderr)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
