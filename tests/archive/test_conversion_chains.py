"""Random libraries are converted through chains of versions, and everything in them is compared."""

from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, given, settings, strategies as st

from mlfbuild.archive.compare import compare
from mlfbuild.archive.conversion import convert
from mlfbuild.archive.layout import archive_files
from mlfbuild.archive.read import read_files
from mlfbuild.core.errors import UsageError
from mlfbuild.library import OPERATOR, Library
from support.examples import examples
from support.random_libraries import libraries

FOUND: dict[str, Any] = {"interface": "", "pools": (), "devices": (), "workspace_io": False}
"""What the reader finds in the code."""


def refused(library: Library, version: int) -> bool:
    """Return whether the version cannot hold ``library``, from the description of the format."""
    (first, *more) = library.modules
    devices = [target.device for target in first.targets]
    by_device = len(devices) < 2 or (None not in devices and len(set(devices)) == len(devices))
    return bool(more and version < 7) or (first.style == OPERATOR and version < 4) or (version < 6 and not by_device)


def assert_equal(library: Library, expected: Library) -> None:
    assert library == expected
    dates = [[(module.export_datetime, module.export_utc) for module in side.modules] for side in (library, expected)]
    assert dates[0] == dates[1]


@settings(max_examples=examples(500), deadline=None, suppress_health_check=list(HealthCheck))
@given(libraries(), st.lists(st.integers(1, 7), min_size=1, max_size=5))
def test_any_chain_of_versions_keeps_everything(library: Library, versions: list[int]) -> None:
    current = read_files(archive_files(library), "a.tar")
    written = archive_files(current)  # the page for people describes what was found in the code
    modules = tuple(replace(module, **FOUND) for module in current.modules)
    assert_equal(replace(current, modules=modules), convert(library, 7))
    for version in versions:
        if refused(current, version):
            continue
        older = read_files(archive_files(current, version), "a.tar")
        assert_equal(older, convert(current, version))
        assert archive_files(older) == written
        assert compare(older, current).differences == ()
        current = older


@settings(max_examples=examples(200), deadline=None, suppress_health_check=list(HealthCheck))
@given(libraries(), st.integers(1, 7))
def test_versions_that_cannot_hold_a_library_refuse_it(library: Library, version: int) -> None:
    try:
        convert(library, version)
    except UsageError:
        assert refused(library, version)
    else:
        assert not refused(library, version)
