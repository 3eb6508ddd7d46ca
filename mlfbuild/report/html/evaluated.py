"""The last evaluations of a model for the templates: the value with its limits, and tables of classes and cases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlfbuild.core import counted
from mlfbuild.evaluation import METRICS, EvaluationTable, evaluation_in, evaluation_tables, value_text
from mlfbuild.quantization import GOOD, LOSS_COLUMNS, loss_rows, loss_summary

_Json = Mapping[str, Any]


@dataclass(frozen=True)
class EvaluatedView:
    """An evaluation of a model, or what its quantisation loses."""

    title: str
    state: str
    text: str
    note: str = ""
    tables: tuple[EvaluationTable, ...] = ()


def evaluated_views(model: _Json) -> Iterator[EvaluatedView]:
    """Yield the evaluations of a model; none if it has no test set, or if the report does not know of them."""
    for check in model.get("evaluate", ()):
        yield _evaluation(check)
        if "losses" in check:
            yield _losses(model["name"], check["losses"])


def _evaluation(check: _Json) -> EvaluatedView:
    if "result" not in check:
        return EvaluatedView("evaluate", check["state"], "not yet: run mlfbuild evaluate")
    result = evaluation_in(check["result"])
    text = f"{value_text(result, check.get('limits', {}))} on {check.get('machine', '')}"
    word = {"passed": "passed", "failed": "FAILED"}.get(check["state"], "outdated, before a change of its inputs")
    note = ", ".join(check.get("missed", {}).values()) if check["state"] == "failed" else ""
    return EvaluatedView("evaluate", check["state"], f"{word}, {text}", note, tuple(evaluation_tables(result)))


def _losses(name: str, found: _Json) -> EvaluatedView:
    if found["state"] != "current":
        before = "outdated, before a change of its inputs" if found["state"] == "outdated" else "not yet"
        return EvaluatedView("lost accuracy", "", f"{before}: run mlfbuild evaluate --losses")
    table = EvaluationTable(
        "Tensors, the worst first", [*LOSS_COLUMNS], loss_rows(found), "".join(LOSS_COLUMNS.values())
    )
    note = (
        f"{counted(found['cases'], 'case')}; dB is signal to noise against the float network, and {GOOD:g} dB suffice"
    )
    note += f"; mlfbuild quantize {name} --improve applies the advice" if found["begins"] else ""
    return EvaluatedView("lost accuracy", "", loss_summary(found), note, (table,))


def lowest_accuracy(models: Sequence[_Json]) -> tuple[float | None, str | None]:
    """Return the lowest value of an image's models, of metrics from 0 to 1, and what it is: "top1 of kws".

    Only results that are up to date count; both are ``None`` without any.
    """
    found = [
        (check["result"]["value"], f"{check['result']['metric']} of {model['name']}")
        for model in models
        for check in model.get("evaluate", ())
        if check["state"] in {"passed", "failed"} and check["result"]["value"] is not None
        if (kind := METRICS.get(check["result"]["metric"])) is not None and not kind.error
    ]
    return min(found, default=(None, None))
