"""A run of a model as a table of operators, in 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from mlfbuild.core import shown, text_table
from mlfbuild.core.keys import duration_text, latency_text
from mlfbuild.report.operators.cycles import TimedPart, sum_of_cycles
from mlfbuild.report.operators.image_profile import CodeRun, ImageProfile
from mlfbuild.report.operators.operator_runs import ModelRun, OperatorRun, figures_of, short_name, total
from mlfbuild.report.text.columns import fitted_table, used_part
from mlfbuild.timing import CycleCount

if TYPE_CHECKING:
    from mlfbuild.report.operators.profile import Profile
    from mlfbuild.verify import CycleRuns

_LONGEST = 1000
"""Maximum characters of a name with ``verbose``."""
_COUNTED: tuple[str, ...] = ("count", "share")
_MOST_FUNCTIONS = 20
"""Lines of an image's table without ``verbose``."""
_WITH_MACS = (*_COUNTED, "MACs", "/MAC", "bound")
_WORTH_RAM = 0.01
"""The share of the cycles that code in RAM must save to be worth a line."""


def run_text(run: ModelRun, *, verbose: bool = False) -> str:
    """Return the table of a run: a line for each operator, with full names and C functions if ``verbose``.

    Columns: instructions, share, multiply-accumulates (MACs), instructions per MAC, and the lower bound of instructions
    for the MACs. Unknown numbers and zero MACs are left blank. A second table has modelled cycles, if they are known,
    with their time and the share of each kind, a third one the cycles that a device measured beside them.
    """
    profile = run.profile
    module = "" if profile.module == run.model else f" (module {profile.module})"
    head = f"{run.model}{module} for {run.target} on {profile.board}: "
    text = f"{head}{profile.instructions:,} instructions for {run.inputs_text}\n{_table(run, verbose=verbose)}"
    cycles, part = profile.cycles, profile.part
    measured = "" if run.measured is None else f"\n\n{_measured_text(run, run.measured, module, verbose=verbose)}"
    if cycles is None or part is None:
        return f"{text}{measured}"
    time = latency_text(part.latency(cycles.total))
    summary = (
        f"{run.model}{module} for {run.target} on {part.title}: {cycles.total:,} cycles, {time} ({part.exactness})"
    )
    table = _cycles_table(run, cycles, part, verbose=verbose)
    return f"{text}\n\n{summary}\n{table}{_code_in_ram(profile, cycles.total)}{measured}"


def _code_in_ram(profile: Profile, cycles: int) -> str:
    """Return a line with what code in RAM would save, if it is enough to be worth RAM."""
    if profile.code_waits < _WORTH_RAM * cycles:
        return ""
    saved = f"{profile.code_waits:,} cycles ({100 * profile.code_waits / cycles:.1f} %)"
    return f"\ncode in RAM would save at least {saved} and take {profile.code:,} bytes: placement: {{code: .ramfunc}}"


def image_text(found: ImageProfile, *, verbose: bool = False) -> str:
    """Return the run of an image with the median of cycles as tables of its functions, and a line for each run.

    They are as those of ``run_text``. Without ``verbose``, only the largest functions have a line.
    """
    run, name = found.runs[found.median], shown(found.image.name)
    which = "" if len(found.runs) == 1 else f" in run {found.median + 1} of {len(found.runs)}, the median"
    instructions, cycles, part = run.instructions, run.cycles, found.part
    rows = [(each.instructions, each.cycles, each.title) for each in run.functions]
    if not verbose and len(rows) > _MOST_FUNCTIONS:
        rest = rows[_MOST_FUNCTIONS - 1 :]
        others = (sum(row[0] for row in rest), sum_of_cycles(row[1] for row in rest), f"{len(rest)} other functions")
        rows = [*rows[: _MOST_FUNCTIONS - 1], others]
    rows.append((instructions, cycles, "total"))
    table = text_table if verbose else fitted_table
    parts = [
        f"{name} for {found.target} on {found.board}: {instructions:,} instructions{which}",
        table(
            [(*_numbers(count, instructions, None, None)[:2], title) for count, _, title in rows],
            header=(*_COUNTED, "function"), align="rr",
        ),
    ]  # fmt: skip
    if cycles is not None and part is not None:
        time = latency_text(part.latency(cycles.total))
        parts += [
            f"\n{name} for {found.target} on {part.title}: {cycles.total:,} cycles, {time} ({part.exactness})",
            table(
                [(*_cycle_numbers(each, cycles.total, part), title) for _, each, title in rows if each is not None],
                header=(*_cycle_columns(cycles.total, part), "function"), align="r" * (3 + len(_SPLIT)),
            ),
        ]  # fmt: skip
    return "\n".join([*parts, *(["", _runs_table(found.runs, part)] if len(found.runs) > 1 else [])])


def _runs_table(runs: Sequence[CodeRun], part: TimedPart | None) -> str:
    unit = _unit(max(run.cycles.total for run in runs if run.cycles), part) if part else ""
    timed = ("cycles", unit, "wait") if part else ()
    rows = []
    for number, run in enumerate(runs, 1):
        cells = [str(number), f"{run.instructions:,}"]
        if part is not None and run.cycles is not None:
            cells += [f"{run.cycles.total:,}", _time(run.cycles.total, part, unit), f"{run.cycles.waiting:,}"]
        rows.append(cells)
    return text_table(rows, header=("run", "instructions", *timed), align="r" * (2 + len(timed)))


def all_runs(runs: Sequence[ModelRun], limits: Mapping[str, Mapping[str, int]], *, verbose: bool) -> Iterator[str]:
    """Yield the table of each of ``runs``, and the used part of the budgets ``limits``.

    ``limits`` has the budgets of runs by model and key; the empty name has those of the sum of all models.
    """
    yield from (run_text(run, verbose=verbose) for run in runs)
    lines = list(_budget_lines(runs, limits))
    if lines:
        yield "\n".join(["budgets of runs", *lines])


def _budget_lines(runs: Sequence[ModelRun], limits: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    figures = figures_of(runs)
    parts = [run.profile.part for run in runs if run.profile.part]
    for name, key, limit in ((name, key, limit) for name, own in limits.items() for key, limit in own.items()):
        found = figures.get(name, {}).get(key)
        if found is not None:
            subject = f"model {name}" if name else "all models of the image"
            share = used_part(found, limit)
            modelled = f"; {parts[0].exactness}" if key != "instructions" and parts else ""
            figure = (
                f"{latency_text(found)} of {duration_text(limit)}" if key == "latency" else f"{found:,} of {limit:,}"
            )
            yield f"  {subject}: {figure} {'' if key == 'latency' else f'{key} '}({share}{modelled})"


def _table(run: ModelRun, *, verbose: bool) -> str:
    whole = run.profile.instructions
    macs, bound = (total([getattr(each, key) for each in run.operators]) for key in ("macs", "bound"))
    columns = _WITH_MACS if any(each.macs for each in run.operators) else _COUNTED
    rows = [
        *((*_numbers(each.instructions, whole, each.macs, each.bound), _label(each, verbose=verbose))
          for each in run.operators),
        (*_numbers(run.profile.rest, whole, None, None), "between operators"),
        (*_numbers(whole, whole, macs, bound), "total"),
    ]  # fmt: skip
    return _written(run, columns, [(*row[: len(columns)], row[-1]) for row in rows], verbose=verbose)


def _written(run: ModelRun, columns: Sequence[str], cells: Sequence[Sequence[str]], *, verbose: bool) -> str:
    """Return a table whose last column has the names of operators or functions, in full if ``verbose``."""
    header = (*columns, "operator" if any(each.operator for each in run.operators) else "function")
    return (text_table if verbose else fitted_table)(cells, header=header, align="r" * len(columns))


def _numbers(instructions: int, whole: int, macs: int | None, bound: int | None) -> tuple[str, ...]:
    counted = (f"{instructions:,}", f"{100 * instructions / whole:.1f}%")
    if not macs:
        return (*counted, "", "", "")
    return (*counted, f"{macs:,}", f"{instructions / macs:.2f}", "" if bound is None else f"{bound:,}")


_SPLIT = {"arithmetic": "arith.", "memory": "ld/st", "branches": "branch", "waiting": "wait"}
"""The headings of the kinds of cycles."""


_UNITS = {"ms": 10**6, "us": 10**3}
"""The units of time in tables, in nanoseconds."""


def _unit(most: int, part: TimedPart) -> str:
    """Return the unit for times of up to ``most`` cycles."""
    # With three decimals of a millisecond, the parts of a run below one would have few digits or none.
    return "ms" if part.latency(most) >= _UNITS["ms"] else "us"


def _time(cycles: int, part: TimedPart, unit: str) -> str:
    return f"{part.latency(cycles) / _UNITS[unit]:,.3f}"


def _cycle_columns(whole: int, part: TimedPart) -> tuple[str, ...]:
    return "cycles", "share", _unit(whole, part), *_SPLIT.values()


def _cycles_table(run: ModelRun, all_cycles: CycleCount, part: TimedPart, *, verbose: bool) -> str:
    rows = [
        *((each.cycles, _label(each, verbose=verbose)) for each in run.operators),
        (run.profile.rest_cycles, "between operators"),
        (all_cycles, "total"),
    ]
    cells = [(*_cycle_numbers(cycles, all_cycles.total, part), label) for cycles, label in rows if cycles is not None]
    return _written(run, _cycle_columns(all_cycles.total, part), cells, verbose=verbose)


def _cycle_numbers(cycles: CycleCount, whole: int, part: TimedPart) -> tuple[str, ...]:
    total = cycles.total
    kinds = (f"{100 * getattr(cycles, kind) / total:.0f}%" if total else "" for kind in _SPLIT)
    share = f"{100 * total / whole:.1f}%" if whole else ""
    return f"{total:,}", share, _time(total, part, _unit(whole, part)), *kinds


def _measured_text(run: ModelRun, found: CycleRuns, module: str, *, verbose: bool) -> str:
    part = run.profile.part
    unit = "ticks" if found.emulated else "cycles"
    median = f"{found.total.median:,} {unit}, median of {found.runs}"
    head = f"{run.model}{module} for {run.target} on {found.device}: {median}"
    summary = f"{found.exactness}; modelled for {part.title}, +-{part.error} %" if part else found.exactness
    rows = [
        *((each.measured, each.cycles, _label(each, verbose=verbose)) for each in run.operators if each.measured),
        (found.total, run.profile.cycles, "total"),
    ]
    cells = [
        (*(f"{cycles:,}" for cycles in (spread.least, spread.median, spread.most)),
         *([f"{cycles.total:,}" if cycles else ""] if part else []), label)
        for spread, cycles, label in rows
    ]  # fmt: skip
    columns = ("min", "median", "max", *(["modelled"] if part else []))
    if run.settings:
        summary += f"\nregisters of the device: {run.settings}"
    return f"{head}\n{summary}\n{_written(run, columns, cells, verbose=verbose)}"


def _label(each: OperatorRun, *, verbose: bool) -> str:
    if each.name in {"", each.function}:
        return shown(each.operator or each.function)
    name = f"{shown(each.name, _LONGEST)}  {shown(each.function)}" if verbose else short_name(each.name)
    return f"{shown(each.operator)} {name}"
