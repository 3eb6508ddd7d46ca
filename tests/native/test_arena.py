"""Packing: buffers never overlap, and the size is between the lower bound and that of other methods."""

import itertools

from hypothesis import given, settings, strategies as st

from mlfbuild.library.cgen.arena import Buffer, Span, lower_bound, place
from mlfbuild.library.cgen.skyline import Skyline
from support.examples import examples


def simple(size: int, first: int, last: int) -> Buffer:
    return Buffer((Span(size, first, last),))


@st.composite
def buffers(draw: st.DrawFn, most: int = 20, spans: int = 1) -> list[Buffer]:
    """Draw buffers of up to ``spans`` spans, each of which begins when the one before ends."""
    count = draw(st.integers(0, most))
    found = []
    for _ in range(count):
        time = draw(st.integers(0, 15))
        members = []
        for _ in range(draw(st.integers(1, spans))):
            first, time = time, time + draw(st.integers(0, 6))
            members.append(Span(16 * draw(st.integers(1, 64)), first, time))
        found.append(Buffer(tuple(members)))
    return found


def overlap(a: Buffer, at: int, b: Buffer, bt: int) -> bool:
    """Return whether two buffers at these offsets share a byte at the same time."""
    return any(one.meets(other) and at < bt + other.size and bt < at + one.size for one in a.spans for other in b.spans)


@settings(max_examples=examples(60), deadline=None, derandomize=True)
@given(buffers(spans=3))
def test_buffers_in_use_at_the_same_time_never_overlap(items: list[Buffer]) -> None:
    offsets, size = place(items)
    assert size >= lower_bound(items)
    for (a, at), (b, bt) in itertools.combinations(zip(items, offsets, strict=True), 2):
        assert not overlap(a, at, b, bt)
    assert size == max((offset + item.size for item, offset in zip(items, offsets, strict=True)), default=0)
    assert all(offset >= 0 and offset % 16 == 0 for offset in offsets)


@settings(max_examples=examples(60), deadline=None, derandomize=True)
@given(buffers(most=4, spans=2))
def test_few_buffers_are_packed_optimally(items: list[Buffer]) -> None:
    """Try every packing whose offsets are sums of sizes, one of which is always optimal."""
    sums = sorted(
        {sum(part) for n in range(len(items) + 1) for part in itertools.combinations([i.size for i in items], n)}
    )
    best = min(
        (
            max((offset + item.size for item, offset in zip(items, offsets, strict=True)), default=0)
            for offsets in itertools.product(sums[:8], repeat=len(items))
            if not any(
                overlap(a, at, b, bt)
                for (a, at), (b, bt) in itertools.combinations(zip(items, offsets, strict=True), 2)
            )
        ),
        default=None,
    )
    if best is not None:
        assert place(items)[1] <= best


def test_placing_is_deterministic() -> None:
    items = [simple(16 * (7 * i % 11 + 1), i % 9, i % 9 + i % 4) for i in range(40)]
    assert place(items) == place(list(items))


def test_order_that_no_simple_rule_finds() -> None:
    # By size, by start, by length and by area all end at 112.
    items = [simple(32, 1, 3), simple(48, 0, 0), simple(32, 0, 2), simple(32, 1, 2)]
    assert place(items)[1] == lower_bound(items) == 96


def test_network_that_neither_rules_nor_improvements_pack_best() -> None:
    """The arena of 60 random operators; orders improved step by step end at 5600."""
    grown = [((800, 3, 7), (800, 7, 10)), ((32, 10, 15), (32, 15, 23)), ((1440, 11, 16), (1440, 16, 18))]
    plain = [(320, 0, 1), (2880, 1, 2), (1920, 2, 13), (400, 4, 4), (400, 4, 17), (800, 5, 11), (48, 9, 12),
             (1440, 13, 21), (800, 17, 19), (800, 18, 22), (2240, 19, 20)]  # fmt: skip
    items = [simple(*span) for span in plain] + [Buffer(tuple(Span(*span) for span in spans)) for spans in grown]
    offsets, size = place(items)
    assert size == lower_bound(items)
    for (a, at), (b, bt) in itertools.combinations(zip(items, offsets, strict=True), 2):
        assert not overlap(a, at, b, bt)


def exact(items: list[Buffer], size: int) -> bool:
    """Return whether branch and bound proves within its budget that no packing is smaller than ``size``."""
    times = sorted({span.first for item in items for span in item.spans})
    search = Skyline([item.uses(times) for item in items], size, lower_bound(items))
    search.run()
    return search.exact and not search.offsets


@settings(max_examples=examples(60), deadline=None, derandomize=True)
@given(buffers(most=9, spans=2))
def test_up_to_nine_buffers_are_proved_optimal(items: list[Buffer]) -> None:
    assert exact(items, place(items)[1])


def test_bound_that_no_packing_reaches() -> None:
    """One of two buffers grows while the other shrinks: 80 bytes at each time, and the upper one begins above both."""
    items = [Buffer((Span(16, 0, 0), Span(64, 1, 1))), Buffer((Span(64, 0, 0), Span(16, 1, 1)))]
    assert lower_bound(items) == 80
    assert place(items)[1] == 128
    assert exact(items, 128)


def test_many_buffers_are_packed_well() -> None:
    items = [simple(16 * (i * i * 37 % 101 + 1), i, i + i * i * 13 % 12) for i in range(150)]
    offsets, size = place(items)
    assert len(offsets) == 150
    assert size <= 1.1 * lower_bound(items)


def test_buffers_written_in_place_have_the_larger_size_only_during_their_life() -> None:
    # A small input becomes a large output; before that, the memory next to the input is free.
    grown = Buffer((Span(16, 0, 2), Span(64, 2, 3)))
    assert place([grown, simple(48, 0, 1)]) == ((0, 16), 64)
