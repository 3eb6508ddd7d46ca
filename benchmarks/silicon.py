"""Compare modelled cycles with latencies that others measured on silicon, for the same code.

    python benchmarks/silicon.py --images DIR [--points TEXT ...]     model the images, print a table
    python benchmarks/silicon.py --images DIR --update                and write it to benchmarks/results/ and docs/

DIR contains one image for each point, `<point>.elf`, linked for the board of its core: public code, built outside of
this repository (docs/performance.md names its sources and options). A function `infer` runs the code once; `main`
calls it. For images that vendors flashed, DIR contains clones of their results, and unicorn runs them:

    pip install unicorn
    git -C DIR clone https://github.com/mlcommons/tiny_results_v1.1   (at c32ef94; also v1.2, at cadb362)
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
from counting.report import put_into_pages, table
from counting.vendor_images import imported, model_vendor_image

from mlfbuild.core import MlfError
from mlfbuild.targets import CPUS, MCUS, Mcu, MemoryKeys, TimingKeys
from mlfbuild.timing import CORE_TIMINGS, modelled_error

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
    image: str = ""
    """Path of the image that a vendor flashed, in the repository of its results."""
    before: float | None = None
    """The error of an earlier model in per cent."""

    @property
    def mcu(self) -> Mcu:
        """The part, with its data in the right memory."""
        mcu = MCUS[self.part]
        # OctoML's and the reference submission left the prefetch of the flash off, as Zephyr did in 2022.
        if self.part == "stm32l4r5" and not self.image:
            mcu = mcu.changed(TimingKeys(memories={"flash": MemoryKeys(prefetch=False)}))
        return mcu.with_data_in(self.data) if self.data else mcu

    @property
    def name(self) -> str:
        """The stem of its image."""
        return "-".join((*self.code.lower().replace(",", "").split(), self.part, *self.what.split()[:1]))


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


def _vendor(
    code: str, part: str, folder: str, images: Mapping[str, tuple[str, float, float | None]]
) -> Iterator[Point]:
    for network, (path, throughput, before) in images.items():
        clock = MCUS[part].clock
        yield Point(code, part, network, round(clock / throughput), image=f"{folder}/{path}", before=before)


_BOSCH, _ST = "closed/bosch/code", "closed/STMicroelectronics/code"
VENDORS = (
    *_vendor("Bosch v1.1", "stm32g0b1", f"tiny_results_v1.1/{_BOSCH}/NUCLEO_G0B1RE", {
        "ad": ("ad/BUILD/NUCLEO_G0B1RE/GCC_ARM-CUSTOM_PROFILE/code.bin", 21.484, None),
        "ic": ("ic/BUILD/NUCLEO_G0B1RE/GCC_ARM-CUSTOM_PROFILE/code.bin", 0.599, None),
        "kws": ("kws/BUILD/NUCLEO_G0B1RE/GCC_ARM-CUSTOM_PROFILE/code.bin", 1.472, None),
        "vww": ("vww/BUILD/NUCLEO_G0B1RE/GCC_ARM-CUSTOM_PROFILE/code.bin", 0.535, None),
    }),
    *_vendor("Bosch v1.1", "stm32h7a3", f"tiny_results_v1.1/{_BOSCH}/NUCLEO_H7A3ZI", {
        "ad": ("ad/h7_a3_ml_perf/Release/h7_a3_ml_perf.bin", 737.281, None),
        "ic": ("ic/BUILD/NUCLEO_H7A3ZI_Q/GCC_ARM-CUSTOM_PROFILE/code_application.bin", 21.353, None),
        "kws": ("kws/BUILD/NUCLEO_H7A3ZI_Q/GCC_ARM-CUSTOM_PROFILE/code_application.bin", 67.956, None),
        "vww": ("vww/Release/h7a3_vww.bin", 22.906, None),
    }),
    *_vendor("Bosch v1.1", "stm32l4r5", f"tiny_results_v1.1/{_BOSCH}/NUCLEO_L4R5ZI", {
        "ad": ("ad/Release/l4r5_ad.bin", 176.699, None),
        "ic": ("ic/Release/l4r5_ic.bin", 5.586, None),
        "kws": ("kws/Release/l4r5_kws.bin", 15.954, None),
        "vww": ("vww/Release/l4r5_vww.bin", 5.533, None),
    }),
    *_vendor("Bosch v1.1", "stm32u575", f"tiny_results_v1.1/{_BOSCH}/NUCLEO_U575ZI", {
        "ad": ("ad/Release/m33_ad2.bin", 262.993, None),
        "ic": ("ic/Release/m33_ic.bin", 8.493, None),
        "kws": ("kws/Release/m33_kws.bin", 25.166, None),
        "vww": ("vww/Release/m33_vww.bin", 8.715, None),
    }),
    *_vendor("Bosch v1.2", "stm32f746", f"tiny_results_v1.2/{_BOSCH}/DISCO_F746NG_int8", {
        "ad": ("ad/disco_ad.bin", 584.38, 1.1),
        "ic": ("ic/disco_ic.bin", 15.986, 0.9),
        "kws": ("kws/disco_kws.bin", 52.746, 0.1),
        "vww": ("vww/disco_vww.bin", 17.468, -1.4),
    }),
    *_vendor("Bosch v1.2", "stm32g0b1", f"tiny_results_v1.2/{_BOSCH}/NUCLEO_G0B1RE_int8", {
        "ad": ("ad/nucleo_g0b1re_ad.bin", 24.454, 11.5),
        "ic": ("ic/nucleo_g0b1re_ic.bin", 0.657, 0.6),
        "kws": ("kws/nucleo_g0b1re_kws.bin", 2.107, 0.1),
        "vww": ("vww/nucleo_g0b1re_vww.bin", 0.707, 0.7),
    }),
    *_vendor("Bosch v1.2", "stm32h7a3", f"tiny_results_v1.2/{_BOSCH}/NUCLEO_H7A3ZI_int8", {
        "ad": ("ad/h7_a3_ml_perf.bin", 735.615, -3.9),
        "ic": ("ic/h7a3_ic.bin", 21.811, 0.9),
        "kws": ("kws/h7a3_kws.bin", 68.083, -0.1),
        "vww": ("vww/h7a3_vww.bin", 22.85, -1.1),
    }),
    *_vendor("Bosch v1.2", "stm32l4r5", f"tiny_results_v1.2/{_BOSCH}/NUCLEO_L4R5ZI_int8", {
        "ad": ("ad/l4r5_ad.bin", 171.375, -2.9),
        "ic": ("ic/l4r5_ic.bin", 5.539, -1.3),
        "kws": ("kws/l4r5_kws.bin", 16.623, -4.1),
        "vww": ("vww/l4r5_vww.bin", 5.54, -3.2),
    }),
    *_vendor("Bosch v1.2", "stm32u575", f"tiny_results_v1.2/{_BOSCH}/NUCLEO_U575ZI_int8", {
        "ad": ("ad/m33_ad2.bin", 262.86, -5.1),
        "ic": ("ic/m33_ic.bin", 8.296, -0.1),
        "kws": ("kws/m33_kws.bin", 25.918, -1.2),
        "vww": ("vww/m33_vww.bin", 8.345, -1.6),
    }),
    *_vendor("Bosch v1.2 fast", "stm32f746", f"tiny_results_v1.2/{_BOSCH}/DISCO_F746NG_int8_max_performance", {
        "ad": ("ad/disco_ad.bin", 701.809, None),
    }),
    *_vendor("Bosch v1.2 fast", "stm32h7a3", f"tiny_results_v1.2/{_BOSCH}/NUCLEO_H7A3ZI_int8_max_performance", {
        "ad": ("ad/h7_a3_ml_perf.bin", 923.173, None),
    }),
    *_vendor("Bosch v1.2 fast", "stm32l4r5", f"tiny_results_v1.2/{_BOSCH}/NUCLEO_L4R5ZI_int8_max_performance", {
        "ad": ("ad/l4r5_ad.bin", 211.492, None),
    }),
    *_vendor("Bosch v1.2 fast", "stm32u575", f"tiny_results_v1.2/{_BOSCH}/NUCLEO_U575ZI_int8_max_performance", {
        "ad": ("ad/m33_ad2.bin", 323.527, None),
    }),
    *_vendor("Bosch v1.2 float", "stm32h7a3", f"tiny_results_v1.2/{_BOSCH}/NUCLEO_H7A3ZI_float", {
        "ad": ("ad/h7a3_ad_float.bin", 191.208, -12.1),
        "ic": ("ic/h7a3_ic_float.bin", 8.05, None),
        "vww": ("vww/h7a3_vww_float.bin", 12.282, None),
    }),
    *_vendor("Bosch v1.2 small", "stm32h7a3", f"tiny_results_v1.2/{_BOSCH}/NUCLEO_H7A3ZI_int8_min_ram", {
        "ic": ("ic/h7a3_ic.bin", 11.833, None),
    }),
    *_vendor("ST v1.2", "stm32h7a3", f"tiny_results_v1.2/{_ST}/NUCLEO_H7A3ZI_Q", {
        "ad": ("anomaly_detection/Binaries/AD01-Performance.bin", 816.004, None),
        "ic": ("image_classification/Binaries/IC01-Performance.bin", 24.483, None),
        "kws": ("keyword_spotting/Binaries/KWS01-Performance.bin", 88.356, None),
        "vww": ("visual_wake_words/Binaries/VWW01-Performance.bin", 42.009, None),
    }),
    *_vendor("ST v1.2", "stm32l4r5-single-bank", f"tiny_results_v1.2/{_ST}/NUCLEO_L4R5ZI", {
        "ad": ("anomaly_detection/Binaries/AD01-Performance.bin", 190.086, None),
        "ic": ("image_classification/Binaries/IC01-Performance.bin", 6.056, None),
        "kws": ("keyword_spotting/Binaries/KWS01-Performance.bin", 23.155, None),
        "vww": ("visual_wake_words/Binaries/VWW01-Performance.bin", 11.245, None),
    }),
)  # fmt: skip
"""Median throughput in inferences per second, from the results beside the images, and the error in per cent by the
model before its settings were checked with them (commit 1de55fc1), if it is known.

mlcommons/tiny_results_v1.1 and v1.2, Apache License 2.0, as ST's folders in them. Points of the STM32G0B1 in v1.1
decided about `hidden-waits`, all others are a test: no constant was chosen for them.
"""
POINTS = (*NETWORKS, *LAYERS, *VENDORS)


Results = Mapping[str, Result]
"""By the names of points."""


def error(result: Result, point: Point) -> float:
    """Return how much the modelled cycles differ from the measured ones, in per cent."""
    return 100 * (result.cycles / point.measured - 1)


def mean_error(results: Results, points: Sequence[Point]) -> float:
    """Return the mean of the absolute errors in per cent."""
    return sum(abs(error(results[point.name], point)) for point in points) / len(points)


def chosen_for(point: Point) -> bool:
    """Return whether a rule or constant of the model was chosen with ``point`` in view, so that it is no test."""
    public = point.part == "stm32l4r5" and point.code in {"CMSIS-NN", "TVM"}
    return public or (point.part == "stm32g0b1" and "v1.1" in point.code)


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
            return shown.stdout if shown.returncode == 0 else None
    return None


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
