"""Apply all operations on archives to one that may be damaged."""

import contextlib
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from mlfbuild.archive import pack_archive, read_archive
from mlfbuild.archive.compare import compare
from mlfbuild.archive.conversion import convert
from mlfbuild.archive.describe import describe, describe_text
from mlfbuild.archive.describe.readme import readme_text
from mlfbuild.archive.merge import merge
from mlfbuild.core.errors import (
    CheckFailedError,
    ConflictError,
    InputFileError,
    MlfError,
    UnsupportedModelError,
    UsageError,
)
from mlfbuild.jobs.tree import unpack
from mlfbuild.library import Library, bundles, short_name
from mlfbuild.usecases.validate import validate_archive

SECONDS = 20
"""The time limit for one input; a valid one takes less than a second."""


@contextlib.contextmanager
def no_hang() -> Iterator[None]:
    """Fail if the block takes longer than ``SECONDS``."""

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise AssertionError(f"still busy after {SECONDS} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def exercise(data: bytes, other: Library, folder: Path) -> str:
    """Apply all operations to the archive ``data``; return ``refused`` or ``read``.

    ``other`` is a valid library to merge and compare with, ``folder`` an empty folder. Fails if an error is not
    documented or longer than a line, or if a file is written outside its intended place.
    """
    with no_hang():
        try:
            library = read_archive(data, "a.tar")
        except InputFileError as error:
            assert_one_line(error)
            _validate(data, folder, readable=False)
            return "refused"
        _validate(data, folder, readable=True)
        _look(library, other)
        _write(library)
        _merge(library, other)
        _read_bundles(library)
        _unpack(library, folder)
        return "read"


def assert_one_line(error: MlfError, longest: int = 2000) -> None:
    """Fail unless ``error`` is one clear line, or a line for each reason why a model is not supported."""
    lines = str(error).splitlines()
    assert len(lines) == 1 or (lines and isinstance(error, UnsupportedModelError)), f"not one line: {error}"
    for line in lines:
        assert line and line.isprintable() and len(line) < longest, f"not one clear line: {line!r}"


def _validate(data: bytes, folder: Path, *, readable: bool) -> None:
    path = folder / "a.tar"
    path.write_bytes(data)
    report, refusal = None, None
    try:
        report = validate_archive(path)
    except InputFileError as error:
        assert_one_line(error)
        refusal = error
    path.unlink()
    assert (report is not None) == readable, f"reading and judging disagree: {refusal}"
    for finding in report.findings if report else ():
        assert all(text.isprintable() for text in (finding.place, finding.message, finding.advice)), finding


def _look(library: Library, other: Library) -> None:
    with _documented(InputFileError):
        describe(library)
        describe_text(library, verbose=True)
        readme_text(library)
    with _documented(InputFileError):
        compare(library, other)
        assert compare(library, library).equal, compare(library, library).differences


def _write(library: Library) -> None:
    """Check that the written library reads back equal in every possible version, and is rewritten as the same bytes."""
    for version in (5, 6, 7):
        with _documented(InputFileError, UsageError):
            converted = convert(library, version)
            written = pack_archive(converted, version)
            again = read_archive(written, "b.tar")
            assert again == converted
            assert pack_archive(again, version) == written


def _merge(library: Library, other: Library) -> None:
    with _documented(InputFileError, CheckFailedError):
        merged = merge([("a.tar", library), ("b.tar", other)])
        with _documented(UsageError):  # files of no module may have the path of a module's file
            assert read_archive(pack_archive(merged), "c.tar") == merged


def _read_bundles(library: Library) -> None:
    """Check that bundled libraries name only files that they contain."""
    with _documented(InputFileError):
        for name, bundle in bundles(library, "a.tar").items():
            assert short_name(bundle.name) == name
            assert {*bundle.sources, *bundle.license_files} <= bundle.files.keys()


def _unpack(library: Library, folder: Path) -> None:
    destination = folder / "tree"
    refusal = None
    try:
        unpack(library, destination, archive_id="0" * 64)
    except (InputFileError, UsageError, ConflictError, CheckFailedError, UnsupportedModelError) as error:
        assert_one_line(error)
        refusal = error
    assert destination.exists() == (refusal is None), f"something was written before: {refusal}"
    assert {path.name for path in folder.iterdir()} <= {"tree"}, "written beside the destination"
    assert not any(path.is_symlink() for path in destination.rglob("*"))
    shutil.rmtree(destination, ignore_errors=True)


@contextlib.contextmanager
def _documented(*errors: type[MlfError]) -> Iterator[None]:
    try:
        yield
    except errors as error:
        assert_one_line(error)
