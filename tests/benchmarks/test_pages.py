"""The tables of docs/performance.md and benchmarks/evidence.md are of one compiler: equal figures in two tables."""

import re
from collections.abc import Mapping
from itertools import product
from pathlib import Path

import pytest
from counting.measure import Case
from counting.report import PAGES
from counting.results import load

Row = Mapping[str, str]
Table = Mapping[tuple[str, ...], Row]
NETWORKS = ("kws", "ic", "ad", "vww")
CORES = ("M4", "M55")
LONG = 12
"""Rows of figures that a reader takes in without a plot."""


def rows(name: str, *key: str) -> Table:
    """Return the rows of the table between the marks ``name``, by the cells of the columns ``key``."""
    (page,) = (text for text in map(Path.read_text, PAGES) if f"<!-- counts: {name} -->\n" in text)
    text = page.partition(f"<!-- counts: {name} -->\n")[2].partition("<!-- end -->")[0]
    head, _, *lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()]
    found = [dict(zip(head, line, strict=True)) for line in lines]
    return {tuple(row[column] for column in key): row for row in found}


def number(cell: str) -> int:
    return int(cell.replace(",", ""))


def test_executors_have_the_counted_figures() -> None:
    counted = rows("instructions", "network", "core")["kws", "M4"]
    sizes = load().results[Case("kws", "cortex-m4")]
    found = rows("executors", "kws", "core")["mlfbuild AOT", "M4"]
    assert number(found["instructions"]) == pytest.approx(number(counted["instructions"]), rel=0.001)
    assert number(found["RAM"]) == sizes.arena + sizes.io
    assert number(found["stack"]) == sizes.stack


def test_no_peer_of_the_sizes_table_is_stronger_than_the_best_one() -> None:
    for network, core in product(NETWORKS, CORES):
        row = rows("instructions", "network", "core")[network, core]
        assert row["best peer"] in rows("sizes", "network")[network,]["peers on the M4"]
        assert number(row["its instructions"]) > number(row["instructions"])


def test_a_long_table_has_a_plot_above_it() -> None:
    for page in PAGES:
        for section in re.split(r"^#+ ", page.read_text(), flags=re.MULTILINE):
            for table in re.finditer(r"(?<=-->\n)(?:^\|.*\n)+", section, re.MULTILINE):
                if table[0].count("\n") - 2 > LONG:
                    assert "images/" in section[: table.start()], f"{page.name}: {section.splitlines()[0]}"
