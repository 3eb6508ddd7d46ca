"""``plan.json`` of an archive: the kernels that the compiler considered for each operator, and why it chose one.

It is an extension of Model Library Format, whose tools ignore the file. The content is in
``NetworkOperator.kernels`` and ``by_rows`` of the modules, so that renaming, merging and splitting modules keep it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import fields as fields_of, replace
from typing import Any

from mlfbuild.library.fields import Fields
from mlfbuild.library.network import NetworkKernel, NetworkOperator, NetworkRows
from mlfbuild.library.value import Module

PLAN = "plan.json"
_VERSION_KEY, _VERSION = "mlfbuild_plan", 1


def operator_plan(operator: NetworkOperator) -> dict[str, Any]:
    """Return the kernels of ``operator`` as JSON values, without unknown ones; empty if all are unknown.

    The keys are ``kernels``, a list with an object for each kernel, and ``by_rows``. ``with_plan`` reads the same
    form, and reports have it as well.
    """
    kernels = [
        {key: value for key, value in vars(kernel).items() if value not in ("", None)} for kernel in operator.kernels
    ]
    rows = {} if operator.by_rows is None else {"by_rows": vars(operator.by_rows)}
    return {**({"kernels": kernels} if kernels else {}), **rows}


def plan_json(modules: Iterable[Module]) -> bytes | None:
    """Return the content of ``plan.json``, with a line for each kernel; ``None`` if no kernels are known.

    ``with_plan`` reads it back. Modules are sorted by name, so that equal libraries give equal bytes.
    """
    planned = {module.name: module.network for module in modules if module.network is not None}
    found = {
        name: network.operators
        for name, network in planned.items()
        # A network without operators, whose outputs are its inputs, has a plan: builds expect the file.
        if not network.operators or any(operator.kernels for operator in network.operators)
    }
    texts = [f"{json.dumps(name)}: [\n{_joined(map(_operator_text, found[name]))}\n]" for name in sorted(found)]
    text = f'{{"{_VERSION_KEY}": {_VERSION}, "modules": {{\n{_joined(texts)}\n}}}}\n'
    return text.encode() if found else None


def _operator_text(operator: NetworkOperator) -> str:
    plan = operator_plan(operator)
    kernels = _joined(f" {json.dumps(kernel)}" for kernel in plan.pop("kernels", ()))
    # A line for each kernel keeps differences between two builds readable.
    head = json.dumps({"name": operator.name, "operator": operator.operator, **plan})
    return f'{head[:-1]}, "kernels": [\n{kernels}\n]}}' if kernels else head


def _joined(texts: Iterable[str]) -> str:
    return ",\n".join(texts)


def is_plan(document: object) -> bool:
    """Return whether ``document`` is a ``plan.json`` that ``with_plan`` reads; others are files like any other."""
    return isinstance(document, dict) and document.get(_VERSION_KEY) == _VERSION


def with_plan(module: Module, modules: Fields) -> Module:
    """Return ``module`` with its kernels in ``modules``, the member of ``plan.json``; unchanged if it has none.

    Raises ``InputFileError`` if a value has the wrong type, or the plan has other operators than the module.
    """
    if module.name not in modules or module.network is None:
        return module
    entries, operators = modules.objects(module.name), module.network.operators
    # Operators have no identity beyond their position, so another number of them means another network.
    if len(entries) != len(operators):
        raise modules.error(
            module.name,
            f"has {len(entries)} operators, but the metadata has {len(operators)}",
            code="metadata-network-invalid",
            hint="write the archive again",
        )
    kernels = [tuple(each.record(NetworkKernel) for each in entry.objects("kernels")) for entry in entries]
    planned = tuple(
        replace(operator, kernels=own, by_rows=_rows(entry))
        for operator, own, entry in zip(operators, kernels, entries, strict=True)
    )
    return replace(module, network=replace(module.network, operators=planned))


def _rows(operator: Fields) -> NetworkRows | None:
    if "by_rows" not in operator:
        return None
    entry = operator.member("by_rows")
    return NetworkRows(*(entry.integer(field.name, minimum=-(2**62)) for field in fields_of(NetworkRows)))
