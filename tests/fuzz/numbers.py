"""Models of the campaign that compile: they are built with sanitizers, run, and compared with TensorFlow Lite Micro.

On the host with AddressSanitizer and UndefinedBehaviorSanitizer; a part of them also for the Cortex-M4 and the
Cortex-M55 on the emulator, whose kernels for DSP and MVE run under UBSan traps and compute what the host does.
"""

import functools
import os
import resource
import shutil
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from fuzz.subjects import SUBJECTS, compiled
from mlfbuild.library import Module
from support.board_cases import wrong_networks
from support.host_c import run_cases_on_host
from support.oracle import Array, tflite_micro_cases

HOST, COMPARED = "built for the host", "compared with TFLM"
BOARD_CPUS = ("cortex-m4", "cortex-m55")
TRAPS = ("-fsanitize=undefined", "-fsanitize-undefined-trap-on-error")
CASES = 2
SHARE = 0.6
"""Of the time, for the host."""

PATIENCE = 300
EVERY = 6
"""One in so many models also runs on boards."""

LARGEST = {"host": 1 << 20, "cortex-m4": 64 << 10, "cortex-m55": 64 << 10}
"""Bytes of workspace, inputs and outputs of models that are run."""
MOST_MACS = 20_000_000
SECONDS = 20
"""Of a processor for TensorFlow Lite Micro, which may hang or crash where mlfbuild does not."""


def built(accepted: Sequence[int], most: int, jobs: int, end: float) -> Iterator[tuple[int, str, str, str]]:
    """Build and run ``most`` of the models with the numbers ``accepted``; yield results as the campaign's."""
    from fuzz.campaign import results

    some = accepted[:: max(1, len(accepted) // most)][:most]
    later = time.monotonic() + SHARE * (end - time.monotonic())
    yield from results(_work(on_host, HOST), [some[at::jobs] for at in range(jobs)], later, lambda _: HOST, PATIENCE)
    boards = some[::EVERY]
    for cpu in BOARD_CPUS:
        name, now = f"built for {cpu}", time.monotonic()
        until = end if cpu == BOARD_CPUS[-1] else now + (end - now) / 2
        run = functools.partial(on_board, cpu=cpu)
        numbers = [boards[at::jobs] for at in range(jobs)]
        yield from results(_work(run, name), numbers, until, lambda _, name=name: name, PATIENCE)


def _work(run: Callable[[int], tuple[str, str]], label: str) -> Callable[[Sequence[int], Connection], None]:
    def work(numbers: Sequence[int], connection: Connection) -> None:
        for number in numbers:
            try:
                name, outcome, about = *run(number), ""
            except Exception as error:  # noqa: BLE001 - that is what is looked for
                name, about = label, traceback.format_exc()
                text = str(error)
                outcome = "crashed" if "Sanitizer" in text or "runtime error" in text or "done" in text else "wrong"
            connection.send((number, name, outcome, about))

    return work


def on_host(number: int) -> tuple[str, str]:
    """Run the model on the host; return what was done, and how it ended."""
    data = SUBJECTS["tflite"].make(number)
    library = compiled(data, number, ".tflite", cpu="host")
    (module,) = library.modules
    if _is_large(module, LARGEST["host"]):
        return HOST, "too large"
    cases = drawn_cases(number, module)
    outputs = run_cases_on_host(library, cases)
    expected = judged(data, cases)
    if expected is None:
        return HOST, "accepted"
    for case, (own, judge) in enumerate(zip(outputs, expected, strict=True)):
        for at, (got, wanted) in enumerate(zip(own, judge, strict=True)):
            assert_like(got, wanted, f"case {case}, output {at}")
    return COMPARED, "accepted"


def on_board(number: int, cpu: str) -> tuple[str, str]:
    """Run the model on an emulated board; return what was done, and how it ended."""
    name = f"built for {cpu}"
    data = SUBJECTS["tflite"].make(number)
    library = compiled(data, number, ".tflite", cpu=cpu, name="m")
    (module,) = library.modules
    if _is_large(module, LARGEST[cpu]):
        return name, "too large"
    cases = drawn_cases(number, module)
    outputs = run_cases_on_host(compiled(data, number, ".tflite", cpu="host", name="m"), cases, sanitize=False)
    finite = all(np.isfinite(value).all() for case in outputs for value in case if value.dtype.kind == "f")
    if not finite:  # the boards compare by a difference
        return name, "not finite"
    jobs = [(library, case, values) for case, values in zip(cases, outputs, strict=True)]
    with tempfile.TemporaryDirectory() as folder:
        wrong = wrong_networks(jobs, cpu, Path(folder), _tool, flags=TRAPS)
    assert not wrong, f"{cpu} computes something else than the host"
    return name, "accepted"


def _tool(name: str) -> str:
    path = shutil.which(name)
    assert path is not None, f"{name} is not installed"
    return path


def _is_large(module: Module, most: int) -> bool:
    macs = 0 if module.network is None else sum(each.macs or 0 for each in module.network.operators)
    main = module.main[0]
    return main.workspace_size + main.io_size + main.constants_size > most or macs > MOST_MACS


def drawn_cases(number: int, module: Module) -> list[list[Array]]:
    """Random inputs, and the extremes of their types."""
    chance = np.random.default_rng(number)
    return [[_drawn(chance, info.dtype, info.shape or (), extreme=case > 0) for info in module.inputs]
            for case in range(CASES)]  # fmt: skip


def _drawn(chance: np.random.Generator, dtype: str, shape: tuple[int, ...], *, extreme: bool) -> Array:
    kind = np.dtype(dtype)
    if kind.kind == "f":
        values = chance.standard_normal(shape) * (100 if extreme else 1)
        return values.astype(kind)
    if kind.kind == "b":
        return chance.integers(0, 2, shape).astype(kind)
    limits = np.iinfo(kind)
    if kind.itemsize > 2:  # counts and positions, for which other values have no meaning
        return chance.integers(0, 3, shape).astype(kind)
    if extreme:
        return chance.choice(np.array([limits.min, limits.max, 0], kind), shape)
    return chance.integers(limits.min, limits.max + 1, shape).astype(kind)


def judged(data: bytes, cases: Sequence[Sequence[Array]]) -> list[list[Array]] | None:
    """Return what TensorFlow Lite Micro computes, in a separate process; ``None`` if it refuses or crashes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "outputs.npz"
        child = os.fork()
        if child == 0:
            try:
                resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
                resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
                os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
                runs = tflite_micro_cases(data, cases)
                np.savez(path, *[value for run in runs for value in run])
                os._exit(0)
            except BaseException:  # noqa: BLE001
                os._exit(1)
        if os.waitpid(child, 0)[1] != 0 or not path.exists():
            return None
        with np.load(path) as found:
            values = [found[f"arr_{at}"] for at in range(len(found.files))]
    count = len(values) // len(cases)
    return [values[at : at + count] for at in range(0, len(values), count)]


def assert_like(got: Array, wanted: Array, what: str) -> None:
    """Integers are equal; of float32, which damaged weights drive to infinity, finite results are near each other."""
    assert got.dtype == wanted.dtype, f"{what}: {got.dtype} instead of {wanted.dtype}"
    wanted = wanted.reshape(got.shape)
    if got.dtype.kind != "f":
        assert (got == wanted).all(), f"{what}: {int((got != wanted).sum())} of {got.size} differ"
        return
    finite = np.isfinite(wanted) & np.isfinite(got)
    limit = 1e-4 * float(np.abs(wanted[finite]).max(initial=1e-6))
    far = np.abs(got[finite].astype(np.float64) - wanted[finite]) > limit
    assert not far.any(), f"{what}: {int(far.sum())} of {got.size} differ by more than {limit}"
