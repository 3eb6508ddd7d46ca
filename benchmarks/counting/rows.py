"""The command line of benchmarks whose results are rows of one table."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from counting.firmware import MeasurementError
from counting.report import put_into_pages
from counting.results import save_rows
from mlfbuild.core import MlfError

_Row = TypeVar("_Row")


def measured_rows(
    about: str | None,
    measure: Callable[..., _Row],
    works: Sequence[tuple[Any, ...]],
    blocks: Callable[[Sequence[_Row]], Mapping[str, str]],
    load: Callable[[], list[_Row]],
    committed: Path,
) -> list[_Row]:
    """Return what ``measure`` returns for the arguments in ``works``, and print the tables of ``blocks``.

    ``--update`` writes the rows to ``committed`` and their tables into the pages. Otherwise the process ends with
    status 1 if the rows differ from those that ``load`` returns; with 2 if something cannot be measured.
    """
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true", help="write the results into the repository")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    try:
        with ProcessPoolExecutor(options.jobs) as pool:
            results = list(pool.map(measure, *zip(*works, strict=True)))
    except (MeasurementError, MlfError) as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    print(*blocks(results).values(), sep="\n")
    if options.update:
        save_rows(results, committed)
        put_into_pages(blocks(results))
    elif results != load():
        sys.exit(f"differs from {committed}")
    return results
