"""Buffers in several memories: against all assignments of small cases, and the heuristic against the exact search."""

import itertools
import random
from collections.abc import Sequence

import pytest

from mlfbuild.library.cgen import Buffer, Span, SpreadBuffers, place, shortage, spread, spreading

Case = tuple[list[Buffer], list[tuple[int, ...]], list[int]]


def case(seed: int, most: int = 7, memories: int = 2) -> Case:
    """Return random buffers, their costs, and memories that are a little too small for the best ones."""
    source = random.Random(seed)
    buffers, costs = [], []
    for _ in range(source.randint(1, most)):
        spans = []
        for _ in range(1 if source.random() < 0.8 else 2):
            first = source.randrange(8)
            spans.append(Span(16 * source.randint(1, 6), first, first + source.randrange(4)))
        buffers.append(Buffer(tuple(spans)))
        accesses = source.randrange(50)
        costs.append(tuple(accesses * memory for memory in range(memories)))
    whole = place(buffers)[1]
    sizes = [16 * source.randint(0, 1 + whole // 24) for _ in range(memories)]
    return buffers, costs, sizes


def cheapest(buffers: Sequence[Buffer], costs: Sequence[Sequence[int]], sizes: Sequence[int]) -> int | None:
    """Return the cost of the best of all assignments."""
    found = [
        sum(cost[memory] for cost, memory in zip(costs, assigned, strict=True))
        for assigned in itertools.product(range(len(sizes)), repeat=len(buffers))
        if all(
            place([buffer for buffer, its in zip(buffers, assigned, strict=True) if its == memory])[1] <= size
            for memory, size in enumerate(sizes)
        )
    ]
    return min(found, default=None)


def assert_fits(
    found: SpreadBuffers, buffers: Sequence[Buffer], costs: Sequence[Sequence[int]], sizes: Sequence[int]
) -> None:
    assert found.cost == sum(cost[memory] for cost, memory in zip(costs, found.memories, strict=True))
    assert found.bound <= found.cost
    for memory, size in enumerate(sizes):
        inside = [at for at, its in enumerate(found.memories) if its == memory]
        ends = [found.offsets[at] + buffers[at].size for at in inside]
        assert max(ends, default=0) == found.sizes[memory] <= size
        for one, other in itertools.combinations(inside, 2):
            for own, its in buffers[one].sizes_beside(buffers[other]):
                start, second = found.offsets[one], found.offsets[other]
                assert start + own <= second or second + its <= start


@pytest.mark.parametrize("memories", [2, 3])
def test_equals_the_best_of_all_assignments(memories: int) -> None:
    without = 0
    for seed in range(150):
        buffers, costs, sizes = case(seed, 7 if memories == 2 else 5, memories)
        found, best = spread(buffers, costs, sizes), cheapest(buffers, costs, sizes)
        assert (None if found is None else found.cost) == best, seed
        without += found is None
        if found is not None:
            assert_fits(found, buffers, costs, sizes)
    assert 20 < without < 130


def test_heuristic_is_near_the_exact_search(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = {seed: spread(*case(seed, 18)) for seed in range(40)}
    monkeypatch.setattr(spreading, "_PACKED", 1)
    monkeypatch.setattr(spreading, "_STATES", 8)
    costs = []
    for seed, best in exact.items():
        found = spread(*case(seed, 18))
        assert best is not None or found is None
        if best is not None and found is not None:
            assert_fits(found, *case(seed, 18))
            assert found.bound <= best.cost <= found.cost
            costs.append((best.cost, found.cost))
    assert len(costs) >= 0.8 * sum(best is not None for best in exact.values())
    assert sum(found for _, found in costs) <= 1.1 * sum(best for best, _ in costs)


def test_is_deterministic_and_prefers_the_first_of_equal_memories() -> None:
    buffers, costs, sizes = case(3, 40)
    assert spread(buffers, costs, sizes) == spread(buffers, costs, sizes)
    found = spread(buffers, [(7, 7)] * len(buffers), [10_000, 10_000])
    assert found is not None
    assert set(found.memories) == {0}


def test_gaps_between_buffers_count() -> None:
    """At most 144 bytes are in use, but all packings of the five buffers need more if one of them is 16 larger."""
    spans = [Span(48, 2, 4), Span(64, 0, 1), Span(48, 1, 3), Span(64, 0, 0), Span(48, 2, 2)]
    buffers = [Buffer((span,)) for span in spans]
    free = [(0,)] * 5
    assert spread(buffers, free, [144]) is not None
    assert spread(buffers, free, [128]) is None


def test_shortage_names_memory_bytes_and_time() -> None:
    buffers = [Buffer((Span(64, 0, 1),)), Buffer((Span(96, 1, 2),)), Buffer((Span(32, 2, 2),))]
    assert shortage(buffers, [32, 64], 16) == (1, 96, 1)
    assert spread(buffers, [(0, 0)] * 3, [32, 144]) is None
    assert spread(buffers, [(0, 0)] * 3, [32, 160]) is not None
