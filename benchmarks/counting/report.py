"""The results in Markdown: blocks that ``update`` puts into pages of the documentation, between two marks."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence

from counting.firmware import REPOSITORY
from counting.measure import NETWORKS, Case
from counting.peers import PEERS, best
from counting.results import Committed, Result, Results
from counting.roofline import model_of, roofline

_REPORTED = ("cortex-m4", "cortex-m55")
_MEMORY = ("fastest", "balanced", "smallest")
_INT8 = tuple(network for network in NETWORKS if not network.endswith("_f32"))


def instructions(results: Results) -> str:
    """Return the instructions of every network and core beside the best peer and the roofline."""
    head = ["network", "core", "instructions", "best peer", "its instructions", "peer / ours", "ours / roofline"]
    rows = []
    for case in _balanced(results, _REPORTED):
        ours = results[case].instructions
        peer = best(case.network, case.cpu)
        theirs = peer.instructions(case.cpu) if peer else None
        beside = ["", "", ""] if not (peer and theirs) else [peer.name, f"{theirs:,}", f"{theirs / ours:.2f}"]
        expected = ""
        if case.network in _INT8:
            expected = f"{ours / sum(roofline(case.graph(), model_of(case.cpu)).values()):.2f}"
        rows.append([case.network, _core(case.cpu), f"{ours:,}", *beside, expected])
    return table(head, rows, right=(2, 4, 5, 6))


def sizes(results: Results) -> str:
    """Return flash and RAM on the M4, with the code apart, and on the M55, beside those of the peers on the M4."""
    rows = []
    for network in NETWORKS:
        m4, m55 = (results[Case(network, cpu)] for cpu in _REPORTED)
        theirs = (
            f"{p.name} {p.sizes.code + p.sizes.weights:,} / {p.sizes.ram + p.sizes.stack:,}" for p in PEERS[network]
        )
        own = [f"{m4.code:,} + {_own(m4, m4.constants)}", _own(m55, m55.code + m55.constants)]
        rows.append([network, *own, "; ".join(theirs)])
    return table(["network", *map(_core, _REPORTED), "peers on the M4"], rows, right=())


def _own(result: Result, flash: int) -> str:
    return f"{flash:,} / {result.arena + result.io + result.stack:,}"


def memory(results: Results) -> str:
    """Return arena and instructions of the int8 networks for each value of the option ``memory``."""
    rows = []
    for network in _INT8:
        for cpu in _REPORTED:
            each = [results[Case(network, cpu, memory)] for memory in _MEMORY]
            cells = (f"{result.arena:,} B, {result.instructions / 1e6:.3f} M" for result in each)
            rows.append([network, _core(cpu), *cells])
    return table(["network", "core", *(f"`{memory}`" for memory in _MEMORY)], rows, right=range(2, 5))


_BLOCKS: dict[str, Callable[[Results], str]] = {
    "instructions": instructions,
    "sizes": sizes,
    "memory": memory,
}
PAGES = tuple(
    REPOSITORY / name
    for name in (
        "docs/performance.md",
        "docs/memory.md",
        "docs/latency.md",
        "docs/field-updates.md",
        "benchmarks/evidence.md",
    )
)
_MARKED = re.compile(r"(<!-- counts: (\w+) -->\n).*?(?=<!-- end -->)", re.DOTALL)


def updated(text: str, committed: Committed) -> str:
    """Return ``text``, a page, with its blocks made anew from ``committed``."""
    return _with_blocks(text, blocks(committed))


def update_pages(committed: Committed) -> None:
    """Put the results into the pages of the documentation."""
    put_into_pages(blocks(committed))


def blocks(committed: Committed) -> Mapping[str, str]:
    """Return the blocks that are made from ``committed``, by name."""
    return {name: text(committed.results) for name, text in _BLOCKS.items()}


def put_into_pages(made: Mapping[str, str]) -> None:
    """Put the blocks ``made`` into the pages, between ``<!-- counts: NAME -->`` and ``<!-- end -->``."""
    for page in PAGES:
        page.write_text(_with_blocks(page.read_text(), made))


def _with_blocks(text: str, made: Mapping[str, str]) -> str:
    return _MARKED.sub(lambda found: f"{found[1]}{made[found[2]]}" if found[2] in made else found[0], text)


def _balanced(results: Results, cpus: Sequence[str]) -> Sequence[Case]:
    wanted = (Case(network, cpu) for network in NETWORKS for cpu in cpus)
    return [case for case in wanted if case in results]


def _core(cpu: str) -> str:
    return cpu.removeprefix("cortex-").upper()


def table(head: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[int]) -> str:
    """Return a Markdown table; the columns ``right`` are numbers."""
    marks = ["---:" if index in right else "---" for index in range(len(head))]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (head, marks, *rows))
