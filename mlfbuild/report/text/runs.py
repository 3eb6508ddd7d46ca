"""A run of a model as a table of operators, in 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mlfbuild.core import shown, text_table
from mlfbuild.report.operators.model_run import ModelRun, counts_of
from mlfbuild.report.operators.operator_runs import OperatorRun, short_name, total
from mlfbuild.report.text.columns import fitted_table

_LONGEST = 1000
"""Maximum characters of a name with ``verbose``."""
_COUNTED: tuple[str, ...] = ("count", "share")
_WITH_MACS = (*_COUNTED, "MACs", "/MAC", "bound")


def run_text(run: ModelRun, *, verbose: bool = False) -> str:
    """Return the table of a run: a line for each operator, with full names and C functions if ``verbose``.

    Columns: instructions, share, multiply-accumulates (MACs), instructions per MAC, and the lower bound of instructions
    for the MACs. Unknown numbers and zero MACs are left blank.
    """
    profile = run.profile
    module = "" if profile.module == run.model else f" (module {profile.module})"
    head = f"{run.model}{module} for {run.target} on {profile.board}: "
    return f"{head}{profile.instructions:,} instructions for {run.inputs_text}\n{_table(run, verbose=verbose)}"


def all_runs(runs: Sequence[ModelRun], limits: Mapping[str, int], *, verbose: bool) -> Iterator[str]:
    """Yield the table of each of ``runs``, and the used part of the budgets ``limits``."""
    yield from (run_text(run, verbose=verbose) for run in runs)
    lines = list(_budget_lines(runs, limits))
    if lines:
        yield "\n".join(["budgets of instructions", *lines])


def _budget_lines(runs: Sequence[ModelRun], limits: Mapping[str, int]) -> Iterator[str]:
    counts = counts_of(runs)
    for name, limit in limits.items():
        if name in counts:
            subject = f"model {name}" if name else "all models of the image"
            share = f"{100 * counts[name] / limit:.0f} %" if limit else "over"
            yield f"  {subject}: {counts[name]:,} of {limit:,} instructions ({share})"


def _table(run: ModelRun, *, verbose: bool) -> str:
    everything = run.profile.instructions
    macs, bound = (total([getattr(each, key) for each in run.operators]) for key in ("macs", "bound"))
    columns = _WITH_MACS if any(each.macs for each in run.operators) else _COUNTED
    rows = [
        *((*_numbers(each.instructions, everything, each.macs, each.bound), _label(each, verbose=verbose))
          for each in run.operators),
        (*_numbers(run.profile.rest, everything, None, None), "between operators"),
        (*_numbers(everything, everything, macs, bound), "total"),
    ]  # fmt: skip
    cells = [(*row[: len(columns)], row[-1]) for row in rows]
    header = (*columns, "operator" if any(each.operator for each in run.operators) else "function")
    return (text_table if verbose else fitted_table)(cells, header=header, align="r" * len(columns))


def _numbers(instructions: int, everything: int, macs: int | None, bound: int | None) -> tuple[str, ...]:
    counted = (f"{instructions:,}", f"{100 * instructions / everything:.1f}%")
    if not macs:
        return (*counted, "", "", "")
    return (*counted, f"{macs:,}", f"{instructions / macs:.2f}", "" if bound is None else f"{bound:,}")


def _label(each: OperatorRun, *, verbose: bool) -> str:
    if each.name in {"", each.function}:
        return shown(each.operator or each.function)
    name = f"{shown(each.name, _LONGEST)}  {shown(each.function)}" if verbose else short_name(each.name)
    return f"{shown(each.operator)} {name}"
