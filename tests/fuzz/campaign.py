"""The campaign of `make fuzz`: damaged and hostile inputs of every kind, in processes that may crash or hang.

    PYTHONPATH=tests python -m fuzz.campaign --inputs 100000 --seconds 600

Each input has a number, from which it is made again: ``--only NUMBER`` runs one input in this process. Workers go
through the numbers; if one dies or does not answer, the input that it had is counted as crashed or hung, and another
worker goes on behind it. Models that compile are then built and run (``fuzz.numbers``). In the end a table is printed:

    tried     inputs
    accepted  read, and for models compiled
    refused   with an error of ours, by exit code
    crashed   an exception that is no error of ours, a signal, or a sanitizer's report
    hung      no answer within a minute, which is far more than any input takes
    escaped   a file written, or left, outside of the folder that it was meant for
    wrong     an error that is not one clear line or has another exit code, a file that reads back as another one, C
              that does not compile, or numbers that differ from TensorFlow Lite Micro's

The exit status is 1 if any of the last four is not 0; their inputs and tracebacks are in the folder ``--keep``.
"""

import argparse
import json
import multiprocessing
import os
import resource
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, islice
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from fuzz.operations import assert_one_line
from fuzz.subjects import SUBJECTS, Subject, subject_of
from mlfbuild.core.errors import MlfError, ProjectFileError

DEFECTS = ("crashed", "hung", "escaped", "wrong")
PATIENCE = 60
"""Seconds until a worker that does not answer is killed."""

MEMORY = 6 << 30
"""Bytes of address space of a worker: an input that takes more raises a MemoryError, and has crashed."""

LONGEST = 5000
"""Characters of a message."""

Result = tuple[int, str, str, str]
"""Number of the input, what it belongs to, outcome, and the first line of what is wrong."""


@dataclass
class Sandbox:
    """A folder with everything that an input may be tempted to write to."""

    root: Path
    work: Path = field(init=False)

    def __post_init__(self) -> None:
        for name in ("work", "home", "tmp", "here"):
            (self.root / name).mkdir()
        self.work = self.root / "work"
        os.environ |= {"HOME": str(self.root / "home"), "TMPDIR": str(self.root / "tmp")}
        tempfile.tempdir = None
        os.chdir(self.root / "here")

    def left(self) -> list[str]:
        """Return what is in it although nothing should be, and remove it."""
        found = [path for path in self.root.rglob("*") if path.parent != self.root or not path.is_dir()]
        for path in sorted(found, reverse=True):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
        return [str(path.relative_to(self.root)) for path in found]


def tried(number: int, sandbox: Sandbox) -> Result:
    """Make and read the input ``number``."""
    name = subject_of(number)
    subject = SUBJECTS[name]
    try:
        data = subject.make(number)
    except Exception as error:
        raise RuntimeError(f"input {number} cannot be made") from error  # a defect of the campaign
    try:
        error = _refusal(subject, data, number, sandbox.work)
        outcome, about = "accepted" if error is None else f"refused {error.exit_code}", ""
        if error is not None:
            _check(error, subject)
    except AssertionError as error:
        text = str(error)
        about = text or traceback.format_exc()
        outcome = "hung" if "still busy" in text else "escaped" if "written" in text else "wrong"
    except Exception:  # noqa: BLE001 - that is what is looked for
        outcome, about = "crashed", traceback.format_exc()
    left = sandbox.left()
    return (number, name, "escaped", f"left {left}") if left else (number, name, outcome, about)


def _refusal(subject: Subject, data: bytes, number: int, folder: Path) -> MlfError | None:
    try:
        subject.read(data, number, folder)
    except MlfError as error:
        return error
    return None


def _check(error: MlfError, subject: Subject) -> None:
    assert error.exit_code in subject.refusals, f"exit code {error.exit_code}: {error}"
    for line in error.problems if isinstance(error, ProjectFileError) else [error]:
        assert_one_line(line, LONGEST)


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _reading(numbers: Sequence[int], connection: Connection) -> None:
    """What a worker does."""
    _limit()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as root:
        sandbox = Sandbox(Path(root))
        for number in numbers:
            connection.send(tried(number, sandbox))
        os.chdir("/")


Work = Callable[[Sequence[int], Connection], None]


@dataclass
class _Worker:
    work: Work
    numbers: Sequence[int]
    process: Any = None
    connection: Any = None
    answered: float = 0.0

    def start(self) -> None:
        context = multiprocessing.get_context("fork")
        self.connection, theirs = context.Pipe(duplex=False)
        self.process = context.Process(target=self.work, args=(self.numbers, theirs), daemon=True)
        self.process.start()
        theirs.close()
        self.answered = time.monotonic()

    def advance(self, past: int) -> None:
        self.numbers = self.numbers[self.numbers.index(past) + 1 :]


def results(
    work: Work, parts: Iterable[Sequence[int]], end: float, name: Callable[[int], str], patience: float = PATIENCE
) -> Iterator[Result]:
    """Yield the result of every number of ``parts``, each in a process, until ``end``."""
    workers = [_Worker(work, numbers) for numbers in parts if numbers]
    for worker in workers:
        worker.start()
    while workers and time.monotonic() < end:
        ready = wait([worker.connection for worker in workers], timeout=1)
        for worker in list(workers):
            if worker.connection in ready:
                try:
                    result: Result = worker.connection.recv()
                except EOFError:  # the process is at its end
                    worker.process.join()
                    if not worker.numbers:
                        workers.remove(worker)
                        continue
                    code = worker.process.exitcode
                    result = (worker.numbers[0], name(worker.numbers[0]), "crashed", f"the process ended with {code}")
                    worker.advance(result[0])
                    worker.start()
                else:
                    worker.advance(result[0])
                    worker.answered = time.monotonic()
                yield result
            elif time.monotonic() - worker.answered > patience:
                worker.process.kill()
                worker.process.join()
                number = worker.numbers[0]
                yield number, name(number), "hung", f"no answer for {patience} s"
                worker.advance(number)
                worker.start()
    for worker in workers:
        worker.process.kill()
        worker.process.join()


class Counts:
    """Outcomes by what they belong to, and files of what is wrong."""

    def __init__(self, keep: Path) -> None:
        self.keep = keep
        self.of: dict[str, Counter[str]] = {}

    def add(self, result: Result) -> None:
        number, name, outcome, about = result
        self.of.setdefault(name, Counter())[outcome] += 1
        if outcome in DEFECTS:
            self.keep.mkdir(parents=True, exist_ok=True)
            path = self.keep / f"{name.replace(' ', '-')}-{number}"
            path.with_suffix(".txt").write_text(about)
            subject = SUBJECTS.get(name) or SUBJECTS[subject_of(number)]
            path.with_suffix(subject.suffix).write_bytes(subject.make(number))
            print(f"{name} {number}: {outcome}: {about.strip().splitlines()[-1] if about.strip() else ''}", flush=True)

    def table(self) -> str:
        others = {outcome for counts in self.of.values() for outcome in counts} - {"accepted", *DEFECTS}
        columns = ["accepted", *sorted(others), *DEFECTS]
        lines = [["", "tried", *columns]]
        total: Counter[str] = Counter()
        for name, counts in self.of.items():
            lines.append([name, f"{counts.total():,}", *(f"{counts[column]:,}" for column in columns)])
            total += counts
        lines.append(["all", f"{total.total():,}", *(f"{total[column]:,}" for column in columns)])
        widths = [max(len(line[at]) for line in lines) for at in range(len(lines[0]))]
        texts = ["  ".join(text.rjust(width) if at else text.ljust(width) for at, (text, width) in
                 enumerate(zip(line, widths, strict=True))) for line in lines]  # fmt: skip
        return "\n".join(texts)

    @property
    def defects(self) -> int:
        return sum(counts[outcome] for counts in self.of.values() for outcome in DEFECTS)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz.campaign", description="Try damaged and hostile inputs.")
    parser.add_argument("--inputs", type=int, default=100_000, help="inputs to read (default 100000)")
    parser.add_argument("--seconds", type=float, default=600, help="time for all of it (default 600)")
    parser.add_argument("--builds", type=int, default=400, help="models that compile to build and run (default 400)")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes (default 2)")
    parser.add_argument("--seed", type=int, default=0, help="start of the numbers: another seed has other inputs")
    parser.add_argument("--keep", type=Path, default=Path("build/fuzz"), help="folder of what is wrong")
    parser.add_argument("--kinds", nargs="+", choices=SUBJECTS, default=list(SUBJECTS), help="kinds (default all)")
    parser.add_argument("--only", type=int, help="read the input with this number in this process")
    parser.add_argument("--json", type=Path, help="file to write the counts to")
    options = parser.parse_args(arguments)
    if options.only is not None:
        return _one(options.only)
    start, counts = time.monotonic(), Counts(options.keep.absolute())
    first = options.seed * 1_000_000_000
    numbers = list(islice((at for at in count(first) if subject_of(at) in options.kinds), options.inputs))
    from fuzz import numbers as numbers_stage, seeds

    for prepare in (seeds.sound_models, seeds.sound_onnx, seeds.sound_archives, seeds.sound_image):
        prepare()  # once, before the workers fork
    accepted: list[int] = []
    share = 0.7 if options.builds else 1.0
    parts = [numbers[at :: options.jobs] for at in range(options.jobs)]
    for result in results(_reading, parts, start + share * options.seconds, subject_of):
        counts.add(result)
        if result[1] == "tflite" and result[2] == "accepted":
            accepted.append(result[0])
    reading = time.monotonic() - start
    done = sum(each.total() for each in counts.of.values())
    busy = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = busy.ru_utime + busy.ru_stime
    print(f"{done:,} inputs in {reading:.0f} s, {processor:.0f} s of processors", flush=True)
    if options.builds:
        for result in numbers_stage.built(accepted, options.builds, options.jobs, start + options.seconds):
            counts.add(result)
    print(counts.table())
    print(f"{time.monotonic() - start:.0f} s in total, seed {options.seed}")
    if options.json:
        options.json.write_text(json.dumps({name: dict(each) for name, each in counts.of.items()}, indent=2))
    return 1 if counts.defects else 0


def _one(number: int) -> int:
    with tempfile.TemporaryDirectory(prefix="fuzz-") as root:
        result = tried(number, Sandbox(Path(root)))
        os.chdir("/")
    print(*result[1:], sep="\n")
    return 1 if result[2] in DEFECTS else 0


if __name__ == "__main__":
    sys.exit(main())
