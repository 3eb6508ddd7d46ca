"""The JSON form of a report: its schema, and reading a file, of an earlier build or of another machine, and untrusted.

A report that was read fits the schema, and its sums are right, so the code that shows or compares it may rely on both.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlfbuild import library
from mlfbuild.core import InputFileError, counted, printable, read_bytes, shown
from mlfbuild.project import Budget
from mlfbuild.report.operators.cycles import TimedPart
from mlfbuild.report.operators.operator_runs import ModelRun, OperatorRun
from mlfbuild.report.sizes.owners import FLASH_KINDS, Owner, SizedSymbol, Sizes
from mlfbuild.timing import CycleCount

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator, ValidationError

    from mlfbuild.report.operators.network_sizes import FlashPart, NetworkSizes
    from mlfbuild.verify import CycleRuns, Spread


FORMAT = 2
"""Version of the JSON form."""


def report_schema() -> dict[str, Any]:
    """Return the JSON Schema of the output of ``mlfbuild report --format json``, the file ``report.schema.json``."""
    schema: dict[str, Any] = json.loads(Path(__file__).with_name("report.schema.json").read_text(encoding="utf-8"))
    return schema


# Other programs read numbers into 64 bits; Python would accept a number of a million digits, and be slow.
_LARGEST = 2**63 - 1
_TYPES = {
    "object": "an object",
    "array": "a list",
    "string": "a string",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "null": "null",
}


def mistake_in(value: object, schema: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return place and reason of the most relevant mistake, such as ``("images[0].flash", "must be at least 0")``.

    ``None`` if ``value`` fits the JSON Schema ``schema`` (draft 2020-12). The place is empty if it is the whole value.
    Integers have at most 64 bits, and strings have no lone surrogates, which no encoding can write.
    """
    from jsonschema.exceptions import best_match

    error = best_match(_strict_validator()(schema).iter_errors(value))
    return None if error is None else _described(error)


@cache
def _strict_validator() -> type[Draft202012Validator]:
    """Return the validator class; it is kept, because making it takes as long as checking a small report."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    # JSON Schema counts 1.0 as an integer, which Python does not take as an index; a lone surrogate cannot be written
    # in UTF-8.
    types = Draft202012Validator.TYPE_CHECKER.redefine_many({"integer": _is_integer, "string": _is_text})
    strict: type[Draft202012Validator] = extend(Draft202012Validator, type_checker=types)  # type: ignore[no-untyped-call]  # jsonschema has no annotation for it
    return strict


def _is_integer(_checker: object, value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _LARGEST


def _is_text(_checker: object, value: object) -> bool:
    return isinstance(value, str) and not any("\ud800" <= character <= "\udfff" for character in value)


def _described(error: ValidationError) -> tuple[str, str]:
    """Return place and reason; jsonschema's own messages may quote a whole report."""
    path, rule = _path(error.absolute_path), str(error.validator)
    wanted: Any = error.validator_value
    found: Any = error.instance
    schema: Any = error.schema
    if rule == "required":
        return _joined(path, next(key for key in wanted if key not in found)), "is missing"
    if rule == "additionalProperties":
        known = schema.get("properties", {})
        return _joined(path, next(key for key in found if key not in known)), "is an unknown member"
    return path, _REASONS[rule](wanted, found) if rule in _REASONS else f"violates the rule {rule} of the schema"


def _wrong_type(wanted: Any, found: Any) -> str:
    if isinstance(found, str) and not _is_text(None, found):
        return "has a lone surrogate, which is not a character"
    if isinstance(found, int) and abs(found) > _LARGEST:
        return "does not fit 64 bits"
    return f"must be {' or '.join(_TYPES[name] for name in ([wanted] if isinstance(wanted, str) else wanted))}"


_REASONS: Mapping[str, Callable[[Any, Any], str]] = {
    "type": _wrong_type,
    "const": lambda wanted, _: f"must be {shown(wanted)}",
    "enum": lambda wanted, _: f"must be one of {', '.join(map(str, wanted))}",
    "minimum": lambda wanted, _: f"must be at least {wanted}",
    "pattern": lambda wanted, _: f"must match {wanted}",
    "maxLength": lambda wanted, _: f"has more than {wanted} characters",
    "minItems": lambda wanted, _: f"must have at least {counted(wanted, 'item')}",
    "anyOf": lambda _wanted, _: "has none of the allowed forms",
}
"""The reason by keyword of the schema, from the keyword's value and the value that was found."""


def _path(parts: Iterable[str | int]) -> str:
    path = ""
    for part in parts:
        path = f"{path}[{part}]" if isinstance(part, int) else _joined(path, part)
    return path


def _joined(path: str, key: str) -> str:
    return f"{path}.{shown(key, 60)}" if path else shown(key, 60)


Report = Mapping[str, Any]
"""The JSON form of a report."""
_VERSION = "mlfbuild_report"
_HINT = "create the report with `mlfbuild report -o FILE.json`"
_schema = cache(report_schema)
"""A copy that is not changed, so that a thousand reports read the file of the schema once."""


def read_report(path: Path) -> Report:
    """Return the report in the file ``path``, as JSON values.

    It fits ``report_schema``, and its sums are right: code that shows it may index and add without checks. Names in it
    are still untrusted text.

    Raises ``InputFileError`` if it is missing, damaged, not a report, of another format version, or inconsistent.
    """
    return report_in(read_bytes(path, "report"), path)


def report_in(data: bytes, path: Path) -> Report:
    """Return the report in ``data``, the content of a file ``path``, which need not exist; as ``read_report``."""
    found = library.parse_json(data, str(path), _HINT)
    if not isinstance(found, dict) or _VERSION not in found:
        raise InputFileError("not-a-report", place=path, reason="the file is not a report", hint=_HINT)
    version = found[_VERSION]
    if version != FORMAT and isinstance(version, int):
        raise InputFileError(
            "report-version",
            place=path,
            reason=f"the report has format {shown(version, 40)}, and this version of mlfbuild reads format {FORMAT}",
            hint="create the report with this version of mlfbuild",
        )
    # Sums are only compared if the types fit.
    mistake = mistake_in(found, _schema()) or next(_contradictions(found), None)
    if mistake is not None:
        where, reason = mistake
        raise InputFileError("report-damaged", place=f"{path}: {where}" if where else path, reason=reason, hint=_HINT)
    return found


def title_of(image: Report) -> str:
    """Return the title of an image, such as ``app for m4``, or the name of its file without a project."""
    return named_title(image["firmware"], image.get("target"))


def named_title(firmware: str, target: str | None) -> str:
    """Return the title of the image of ``firmware`` for ``target``; ``None`` is an image without a project."""
    return f"{firmware} for {target}" if target else firmware


def sizes_in(image: Report) -> tuple[Sizes, dict[str, Budget], Budget]:
    """Return the sizes of ``image`` by owner, the budgets of its models, and that of the image."""
    models = tuple(_owner(owner) for owner in image["models"])
    budgets = {owner["name"]: Budget(**owner["budget"]) for owner in image["models"] if "budget" in owner}
    return Sizes(models, tuple(_owner(owner) for owner in image["others"])), budgets, Budget(**image["budget"])


def networks_in(model: Report) -> tuple[NetworkSizes, ...]:
    """Return the networks of a model with the flash of each operator; empty if the report has none."""
    return tuple(_network(network) for network in model.get("networks", ()))


def _network(found: Report) -> NetworkSizes:
    from mlfbuild.report.operators.network_sizes import NetworkSizes  # loads numpy

    tensors = tuple(library.NetworkTensor(**{**tensor, "shape": tuple(tensor["shape"])}) for tensor in found["tensors"])
    operators = tuple(
        library.NetworkOperator(
            **{key: operator[key] for key in ("name", "operator", "function", "macs")},
            inputs=tuple(operator["inputs"]),
            outputs=tuple(operator["outputs"]),
            scratch=library.NetworkScratch(**operator["scratch"]) if operator["scratch"] else None,
            removed=library.RemovedChannels(**operator["removed"]) if "removed" in operator else None,
            kernels=tuple(library.NetworkKernel(**kernel) for kernel in operator.get("kernels", ())),
            by_rows=library.NetworkRows(**operator["by_rows"]) if "by_rows" in operator else None,
        )
        for operator in found["operators"]
    )
    memories = tuple(
        library.NetworkMemory(**{each.name: memory[each.name] for each in fields(library.NetworkMemory)})
        for memory in found.get("arenas", {"memories": ()})["memories"]
    )
    network = library.Network(found["arena"], tensors, operators, memories=memories)
    parts = tuple(_part(operator) for operator in found["operators"])
    return NetworkSizes(found["module"], found["executor"], network, parts, _part(found["rest"]))


def runs_in(image: Report) -> list[ModelRun]:
    """Return the runs of the models of ``image``; empty if the report has none."""
    return [
        _run(image, model["name"], network)
        for model in image["models"]
        for network in model.get("networks", ())
        if "profile" in network
    ]


def _run(image: Report, model: str, network: Report) -> ModelRun:
    from mlfbuild.report.operators.profile import CallCount, Profile  # loads the emulator

    operators = tuple(
        OperatorRun(
            **{key: operator[key] for key in ("function", "instructions", "name", "operator", "macs", "bound")},
            number=number,
            cycles=CycleCount(**operator["cycles_by_kind"]) if "cycles_by_kind" in operator else None,
            measured=_spread(operator["measured"]) if "measured" in operator else None,
        )
        for number, operator in enumerate(network["operators"])
        if operator["function"] and operator["instructions"] is not None
    )
    found = network["profile"]
    calls = tuple(CallCount(each.function, each.instructions, each.cycles) for each in operators)
    profile = Profile(printable(network["module"]), printable(found["board"]), calls, found["rest"], stack=0)
    modelled = found.get("modelled")
    if modelled is not None:
        part = TimedPart(printable(modelled["mcu"]), modelled["clock"], modelled["error"])
        profile = replace(profile, part=part, rest_cycles=CycleCount(**modelled["rest"]))
    names = (printable(image.get("target", "")), printable(model), printable(found["inputs"]))
    return ModelRun(*names, profile, operators, _measured(found["measured"]) if "measured" in found else None)


def _measured(found: Report) -> CycleRuns:
    from mlfbuild.verify import CycleRuns  # loads the runners

    about = {key: found[key] for key in ("counter", "emulated", "runs", "overhead")}
    return CycleRuns(device=printable(found["device"]), total=_spread(found["cycles"]), operators=(), **about)


def _spread(found: Report) -> Spread:
    from mlfbuild.verify import Spread

    return Spread(found["min"], found["median"], found["max"])


def _part(sizes: Report) -> FlashPart:
    from mlfbuild.report.operators.network_sizes import FlashPart

    return FlashPart(tuple(SizedSymbol("", kind, sizes[kind], flash=True, ram=False) for kind in FLASH_KINDS))


def _owner(owner: Report) -> Owner:
    pieces = tuple(SizedSymbol(**{**piece, "name": printable(piece["name"])}) for piece in owner["pieces"])
    return Owner(printable(owner["name"]), pieces)


_Mistake = tuple[str, str]
"""The place in a report and the reason."""


def _contradictions(report: Report) -> Iterator[_Mistake]:
    seen: set[str] = set()
    for at, image in enumerate(report["images"]):
        where = f"images[{at}]"
        if title_of(image) in seen:
            yield where, f"the image {shown(title_of(image))} appears twice"
        seen.add(title_of(image))
        yield from _wrong_sums(image, where)


def _wrong_sums(image: Report, where: str) -> Iterator[_Mistake]:
    for group in ("models", "others"):
        names = Counter(owner["name"] for owner in image[group])
        yield from ((f"{where}.{group}", f"the owner {shown(name)} appears twice") for name in names if names[name] > 1)
        for at, owner in enumerate(image[group]):
            yield from _wrong_sums_of(owner, f"{where}.{group}[{at}]")
    for at, model in enumerate(image["models"]):
        yield from _wrong_networks(model, f"{where}.models[{at}]")
        yield from _wrong_stack(model, f"{where}.models[{at}].stack")
    yield from _wrong_stack(image, f"{where}.stack")
    owners = [*image["models"], *image["others"]]
    for memory in ("flash", "ram"):
        yield from _unless(f"{where}.{memory}", image[memory], sum(owner[memory] for owner in owners), "its owners")


def _wrong_sums_of(owner: Report, where: str) -> Iterator[_Mistake]:
    for memory, kinds in owner["kinds"].items():
        taken = sum(piece["size"] for piece in owner["pieces"] if piece[memory])
        yield from _unless(f"{where}.{memory}", owner[memory], taken, "its pieces")
        for kind, size in kinds.items():
            of_kind = sum(piece["size"] for piece in owner["pieces"] if piece["kind"] == kind)
            yield from _unless(f"{where}.kinds.{memory}.{kind}", size, of_kind, "its pieces")


def _wrong_stack(subject: Report, where: str) -> Iterator[_Mistake]:
    stack = subject.get("stack")
    if stack is None:
        return
    if len(stack["frames"]) != len(stack["path"]):
        yield f"{where}.frames", f"it has {len(stack['frames'])} entries for {counted(len(stack['path']), 'function')}"
    elif stack["worst_case"] is not None:
        yield from _unless(f"{where}.worst_case", stack["worst_case"], sum(stack["frames"]), "its functions")


def _wrong_networks(model: Report, where: str) -> Iterator[_Mistake]:
    networks = model.get("networks", [])
    parts = [part for network in networks for part in (*network["operators"], network["rest"])]
    taken = sum(part[kind] for part in parts for kind in FLASH_KINDS)
    # Not equal: parts of the model may belong to no network.
    if taken > model["flash"]:
        yield f"{where}.networks", f"they have {taken:,} bytes of flash, but the model has {model['flash']:,}"
    for at, network in enumerate(networks):
        yield from _wrong_numbers(network, f"{where}.networks[{at}]")
        yield from _wrong_counts(network, f"{where}.networks[{at}]")


def _wrong_counts(network: Report, where: str) -> Iterator[_Mistake]:
    profile = network.get("profile")
    if profile is not None:
        counts = [operator["instructions"] or 0 for operator in network["operators"]]
        parts = sum(counts) + profile["rest"]
        yield from _unless(f"{where}.profile.instructions", profile["instructions"], parts, "operators and rest")
    modelled = (profile or {}).get("modelled")
    if modelled is not None:
        kinds = [operator.get("cycles_by_kind", {}) for operator in network["operators"]] + [modelled["rest"]]
        for kind, cycles in modelled["by_kind"].items():
            whole = sum(each.get(kind, 0) for each in kinds)
            yield from _unless(f"{where}.profile.modelled.by_kind.{kind}", cycles, whole, "operators and rest")
        total = sum(modelled["by_kind"].values())
        yield from _unless(f"{where}.profile.modelled.cycles", modelled["cycles"], total, "its kinds")
    for at, operator in enumerate(network["operators"]):
        own = sum(operator.get("cycles_by_kind", {}).values())
        yield from _unless(f"{where}.operators[{at}].cycles", operator.get("cycles", 0), own, "its kinds")


def _wrong_numbers(network: Report, where: str) -> Iterator[_Mistake]:
    """Yield each reference to an operator or a tensor that does not exist."""
    operators, tensors = len(network["operators"]), len(network["tensors"])
    for at, tensor in enumerate(network["tensors"]):
        if not tensor["first"] <= tensor["last"] < max(operators, 1):
            yield (
                f"{where}.tensors[{at}]",
                f"it lives to operator {tensor['last']} of {operators}",
            )
    yield from _wrong_places(network, f"{where}.arenas", operators, tensors)
    for at, operator in enumerate(network["operators"]):
        for key in ("inputs", "outputs"):
            yield from (
                (f"{where}.operators[{at}].{key}", f"there is no tensor {number}")
                for number in operator[key]
                if number >= tensors
            )


def _wrong_places(network: Report, where: str, operators: int, tensors: int) -> Iterator[_Mistake]:
    arenas = network.get("arenas")
    if arenas is None:
        return
    if arenas["fastest"] not in {memory["name"] for memory in arenas["memories"]}:
        yield f"{where}.fastest", f"there is no memory {shown(arenas['fastest'])}"
    if any(size >= larger or waits <= fewer for (size, waits), (larger, fewer) in pairwise(arenas["curve"])):
        yield f"{where}.curve", "its sizes do not rise, or its waits do not fall"
    for at, memory in enumerate(arenas["memories"]):
        named = [number for place in memory["places"] for number in place["tensors"]]
        nodes = [memory["peak_at"], *(place["operator"] or 0 for place in memory["places"])]
        if max(named, default=-1) >= tensors or max(nodes) >= max(operators, 1):
            yield f"{where}.memories[{at}]", "it has a tensor or an operator that the network lacks"


def _unless(where: str, size: int, parts: int, whose: str) -> Iterator[_Mistake]:
    if size != parts:
        yield where, f"it is {size:,}, but {whose} have {parts:,}"
