"""Compare compiled networks of one operator or chain with TensorFlow Lite Micro."""

from collections.abc import Callable, Iterable, Sequence

from mlfbuild.library import Library
from support.board_cases import Job
from support.drawing import Case
from support.host_c import run_many_on_host
from support.oracle import assert_equal, tflite_micro_run


def check_on_host(
    libraries: Sequence[Library], cases: Sequence[Case], names: Iterable[object], *, optimise: str = "-O0"
) -> None:
    """Run the C of ``libraries`` on ``cases`` under sanitizers; ``names`` are for messages."""
    jobs = [(library, library.modules[0], case.inputs) for library, case in zip(libraries, cases, strict=True)]
    for name, case, outputs in zip(names, cases, run_many_on_host(jobs, optimise=optimise), strict=True):
        for got, wanted in zip(outputs, tflite_micro_run(case.model, case.inputs), strict=True):
            assert_equal(got, wanted, str(name))


def check_kinds_on_host(
    kinds: Iterable[str],
    seeds: Sequence[int],
    drawn: Callable[[str, Sequence[int]], list[Case]],
    compiled: Callable[[list[Case], str, str], list[Library]],
) -> None:
    """Run what is ``drawn`` and ``compiled`` for all ``kinds`` of layers in one program: they share headers."""
    libraries, cases, names = [], [], []
    for number, kind in enumerate(kinds):
        some = drawn(kind, seeds)
        libraries += compiled(some, kind, f"net{number}_")
        cases += some
        names += [f"{kind} {seed}" for seed in seeds]
    check_on_host(libraries, cases, names)


def board_jobs(libraries: Sequence[Library], cases: Sequence[Case]) -> list[Job]:
    """Return the jobs for boards that check ``libraries`` on ``cases``: inputs and expected outputs."""
    return [
        (library, case.inputs, tflite_micro_run(case.model, case.inputs))
        for library, case in zip(libraries, cases, strict=True)
    ]
