"""The chart of the arena: bytes in use by operator, and positions of rectangles."""

from mlfbuild.report.html.timeline import timeline
from support import report_sketch as sketch


def tensor(offset: int, size: int, first: int, last: int, memory: str = "arena") -> sketch.Json:
    about = {"name": "t", "dtype": "int8", "shape": [size], "size": size, "memory": memory}
    return {**about, "offset": offset, "first": first, "last": last}


def operator(scratch: tuple[int, int] | None = None) -> sketch.Json:
    place = {"offset": scratch[0], "size": scratch[1]} if scratch else None
    return {"name": "o", "operator": "ADD", "scratch": place, "inputs": [], "outputs": []}


def network(tensors: list[sketch.Json], operators: list[sketch.Json], arena: int) -> sketch.Json:
    return {"arena": arena, "tensors": tensors, "operators": operators}


def test_peak_is_the_operator_with_most_bytes_in_use() -> None:
    chart = timeline(network([tensor(0, 100, 0, 1), tensor(100, 60, 1, 2)], [operator()] * 3, 160))
    assert [column.live for column in chart.columns] == [100, 160, 60]
    assert (chart.peak, chart.peak_at) == (160, 1)


def test_bytes_that_tensors_share_count_once() -> None:
    in_place = [tensor(0, 100, 0, 1), tensor(0, 100, 1, 2), tensor(50, 100, 1, 1)]
    chart = timeline(network(in_place, [operator()] * 3, 150))
    assert [column.live for column in chart.columns] == [100, 150, 100]


def test_scratch_counts_while_its_operator_runs() -> None:
    chart = timeline(network([tensor(0, 10, 0, 1)], [operator(), operator((20, 30))], 50))
    assert [column.live for column in chart.columns] == [10, 40]
    (scratch,) = (mark for mark in chart.marks if mark.kind == "scratch")
    assert (scratch.x, scratch.y, scratch.width, scratch.height) == ("50%", "0%", "50%", "60%")
    assert scratch.operator == 1 and "30 bytes at 20" in scratch.title


def test_rectangle_has_lifetime_as_width_and_bytes_as_height() -> None:
    chart = timeline(network([tensor(25, 50, 1, 2)], [operator()] * 4, 100))
    (mark,) = chart.marks
    assert (mark.x, mark.y, mark.width, mark.height) == ("25%", "25%", "50%", "50%")
    assert mark.title.split("\n") == ["t", "50 int8", "50 bytes", "in the arena at 25 to 75", "operators 1 to 2"]


def test_small_tensors_are_visible() -> None:
    chart = timeline(network([tensor(0, 1, 0, 0), tensor(99_999, 1, 0, 0)], [operator()], 100_000))
    heights = [float(mark.height.rstrip("%")) for mark in chart.marks]
    tops = [float(mark.y.rstrip("%")) for mark in chart.marks]
    assert heights == [0.833, 0.833]
    assert tops[0] + heights[0] == 100 and tops[1] == 0


def test_tensors_outside_the_arena_have_separate_rows() -> None:
    tensors = [tensor(0, 4, 0, 0, "output"), tensor(0, 4, 0, 0, "input"), tensor(0, 4, 0, 0, "constant")]
    chart = timeline(network(tensors, [operator()], 0))
    assert [mark.kind for mark in chart.outside] == ["input", "output"]
    assert chart.marks == () and chart.peak == 0


def test_lifetimes_end_at_the_last_operator() -> None:
    chart = timeline(network([tensor(0, 4, 0, 99)], [operator()] * 2, 4))
    assert chart.marks[0].width == "100%"


def test_labels_end_at_overlapping_tensors() -> None:
    chart = timeline(network([tensor(0, 100, 0, 3), tensor(0, 60, 1, 3), tensor(0, 10, 0, 3)], [operator()] * 4, 100))
    assert [mark.clear for mark in chart.marks] == [0.25, 1, 1]
