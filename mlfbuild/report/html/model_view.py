"""The data of a model and its networks for the templates, with the result of ``mlfbuild verify`` in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mlfbuild.core import counted
from mlfbuild.core.keys import latency_text, rounded_size
from mlfbuild.project import CYCLE_COUNTERS
from mlfbuild.report.document.compare import Change, run_figure
from mlfbuild.report.html import nodes, numbers, operators, owners
from mlfbuild.report.html.arenas import ArenasView, arenas_view
from mlfbuild.report.html.evaluated import EvaluatedView, evaluated_views
from mlfbuild.report.html.graph import Block
from mlfbuild.report.html.timeline import Timeline, timelines
from mlfbuild.report.operators.cycles import CYCLE_KINDS, TimedPart
from mlfbuild.report.sizes.devices import BOTH
from mlfbuild.report.sizes.owners import ARENA, DATA, FLASH_KINDS

_Json = Mapping[str, Any]
# The overview has one word for an image, that of its worst model.
_WORST_FIRST = ("failed", "outdated", "never", "passed")
_WORDS = {"failed": "FAILED", "outdated": "outdated", "never": "not yet", "passed": "passed"}


@dataclass(frozen=True)
class VerifiedView:
    """The check of a model, or of one of its modules."""

    state: str
    text: str
    note: str


def verified_views(model: _Json) -> Iterator[VerifiedView]:
    """Yield the checks of a model; none if it has no vectors, or if the report does not know of them."""
    for check in model.get("verify", ()):
        name = f"{check['module']}: " if check["module"] else ""
        note = str(check.get("problem", "")) if check["state"] == "failed" else ""
        yield VerifiedView(check["state"], f"{name}{_text(check)}", note)


def _text(check: _Json) -> str:
    ran = f"{counted(check.get('cases', 0), 'case')} on {check.get('board', '')}"
    return {
        "passed": f"passed, {ran}",
        "failed": f"FAILED, {ran}",
        "outdated": f"outdated: model or vectors changed since {ran}",
        "never": "not yet: run mlfbuild verify",
    }[check["state"]]


def state_of(models: Iterable[_Json]) -> str:
    """Return the worst result of all checks of an image, empty without any."""
    states = {check["state"] for model in models for check in model.get("verify", ())}
    return next((_WORDS[state] for state in _WORST_FIRST if state in states), "")


@dataclass(frozen=True)
class Fact:
    """A number with its name."""

    name: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class NetworkView:
    """A network of a model."""

    key: str
    json: _Json
    """The network in the JSON form of the report."""
    timelines: tuple[Timeline, ...]
    """One for each memory with an arena."""
    arenas: ArenasView | None
    """``None`` if it was planned for one memory."""
    columns: operators.Columns | None
    """The chart of cycles, instructions or MACs; ``None`` if none of them is known."""
    drawing: tuple[tuple[Block, tuple[nodes.DrawnNode, ...]], ...]
    """The blocks of the drawing, each with its nodes."""
    columns_of_drawing: tuple[int, int]
    """Width of its columns in tens of pixels, and their maximum number."""
    headings: tuple[str, ...]
    rows: tuple[operators.OperatorRow, ...]
    sums: tuple[tuple[str, tuple[str, ...]], ...]
    """The last rows of the table: the bytes of no operator, and the total."""
    removed: tuple[RemovedRow, ...]
    """Channels that the compiler removed from layers, and the total; empty if it removed none."""
    kernels: tuple[KernelRow, ...]
    """The kernels that the compiler considered; empty if they are unknown."""


@dataclass(frozen=True)
class _OperatorFact:
    index: int | None
    operator: str
    name: str


@dataclass(frozen=True)
class RemovedRow(_OperatorFact):
    """Channels that the compiler removed from a layer, or from all."""

    channels: str
    weights: str
    macs: str


@dataclass(frozen=True)
class KernelRow(_OperatorFact):
    """A kernel that the compiler considered for an operator."""

    kernel: str
    chosen: bool
    reason: str
    constants: str
    workspace: str


@dataclass(frozen=True)
class ModelView:
    """A model of an image."""

    key: str
    name: str
    bars: tuple[owners.Bar, ...]
    """Sizes and figures of runs, with their budgets."""
    facts: tuple[Fact, ...]
    path: tuple[tuple[str, str], ...]
    """The deepest call chain, each function with its bytes of stack if they are known."""
    networks: tuple[NetworkView, ...]
    verified: tuple[VerifiedView, ...]
    evaluated: tuple[EvaluatedView, ...]


def model_view(key: str, model: _Json, old: _Json | None) -> ModelView:
    """Return the data of a model; ``old`` is the model in the other report.

    ``key`` is unique on the page; the keys of the model's networks begin with it. Both models are JSON of a report.
    """
    networks = model.get("networks", ())
    # Modules are paired by name, as a model may have more or fewer of them than before.
    former = {network["module"]: network for network in (old or {}).get("networks", ())}
    bars = [*memory_bars(model, [model], old), *_limits(model, old)]
    return ModelView(
        key,
        model["name"],
        tuple(bars),
        tuple(_facts(model)),
        tuple(_path(model.get("stack") or {})),
        tuple(
            _network(f"{key}-network-{at}", network, former.get(network["module"]))
            for at, network in enumerate(networks)
        ),
        tuple(verified_views(model)),
        tuple(evaluated_views(model)),
    )


def _path(stack: _Json) -> Iterator[tuple[str, str]]:
    names = stack.get("path", ())
    # An unknown stack has a path to what is unknown, with zeros as its sizes.
    frames = () if stack.get("worst_case") is None else stack.get("frames") or ()
    for index, name in enumerate(names):
        yield name, numbers.count(frames[index]) if index < len(frames) else ""


def _limits(model: _Json, old: _Json | None) -> Iterator[owners.Bar]:
    """Yield the bars of stack and instructions, if they are known."""
    budget = model.get("budget", {})
    for title, unit, key in (("Stack", "bytes", owners.STACK), ("Instructions", "instructions", "instructions")):
        value = figure_of(model, key)
        if value is not None:
            before = figure_of(old, key) if old else None
            change = None if before is None else Change(before, value)
            yield owners.bar(title, unit, {key: value}, budget.get(key), change)
    yield from _modelled_bars(model, old)


def _modelled_bars(model: _Json, old: _Json | None) -> Iterator[owners.Bar]:
    """Yield the bars of modelled cycles, by kind, and of their time, if they are known."""
    budget, networks = model.get("budget", {}), model.get("networks", ())
    cycles, latency = (run_figure(model, key) for key in ("cycles", "latency"))
    # A model has one microcontroller, so the first network with modelled cycles has the part of all of them.
    part = next((found for network in networks if (found := operators.modelled(network))), None)
    if cycles is None or latency is None or part is None:
        return
    before = run_figure(old, "cycles") if old else None
    change = None if before is None else Change(before, cycles)
    kinds = {kind: sum(network["profile"]["modelled"]["by_kind"][kind] for network in networks) for kind in CYCLE_KINDS}
    unit = f"cycles on {part.title} ({part.exactness})"
    yield owners.bar("Cycles", unit, kinds, budget.get("cycles"), change)
    time = owners.bar("Latency", f"({part.exactness})", {"arithmetic": latency}, budget.get("latency"))
    yield replace(time, show=latency_text)


def figure_of(model: _Json, key: str) -> int | None:
    """Return a figure of a model by the key of its budget; ``None`` if it is unknown.

    The stack is the worst case, otherwise the measured one, and those of runs are sums over the model's networks.
    """
    if key in {"flash", "ram"}:
        return int(model[key])
    if key != "stack":
        return run_figure(model, key)
    stack = model.get("stack") or {}
    known = stack.get("worst_case")
    # The bound comes first: a measured stack is that of one run, and another one may need more.
    return stack.get("measured") if known is None else known


def _facts(model: _Json) -> Iterator[Fact]:
    networks = model.get("networks", ())
    if networks:
        yield Fact("Arena", numbers.size(sum(network["arena"] for network in networks)))
        yield Fact("Operators", numbers.count(sum(len(network["operators"]) for network in networks)))
        macs = [operator.get("macs") for network in networks for operator in network["operators"]]
        note = "without those of the NPU" if model.get("devices") else ""
        yield Fact("MACs", numbers.count(sum(value or 0 for value in macs)), note)
    for part in model.get("devices", ()):
        flash, ram = numbers.size(part["flash"]), numbers.size(part["ram"])
        if part["device"] == BOTH:
            yield Fact("RAM of both, in turns", ram)
        else:
            yield Fact(f"Flash of {part['device']}", flash, f"RAM {ram}")
    stack = model.get("stack")
    if stack:
        known = stack.get("worst_case")
        yield Fact("Stack, worst case", "unknown" if known is None else numbers.size(known), stack.get("reason", ""))
        if stack.get("measured") is not None:
            yield Fact("Stack, measured", numbers.size(stack["measured"]))
    for network in networks:
        part = operators.modelled(network)
        if part is not None:
            latency = network["profile"]["modelled"]["latency"]
            yield Fact("Latency", latency_text(latency), f"{part.exactness}, on {part.title}")
        if network.get("profile"):
            profile = network["profile"]
            yield from _measured(profile)
            yield Fact(
                "Counted on the emulator",
                profile["board"],
                f"for the first case of {profile['inputs']}" if profile["inputs"] else "for zeros",
            )


def _measured(profile: _Json) -> Iterator[Fact]:
    """Yield the cycles that a device measured, or the time that an emulated one counted."""
    found = profile.get("measured")
    if found is not None:
        cycles, title = found["cycles"], CYCLE_COUNTERS[found["counter"]]
        spread = f"{numbers.count(cycles['min'])} to {numbers.count(cycles['max'])} in {found['runs']} runs"
        # The counter of an emulated device advances with the emulator's time, so its numbers must not be read as
        # cycles.
        if found["emulated"]:
            note = f"{spread}; {title} of {found['device']} counts the time of the emulator, not cycles"
            yield Fact("Time on the emulator", f"{numbers.count(cycles['median'])} ticks", note)
        else:
            note = f"{spread}; measured on {found['device']} ({title}), no interrupts"
            yield Fact("Cycles, measured", numbers.count(cycles["median"]), note)


def _network(key: str, network: _Json, old: _Json | None) -> NetworkView:
    drawing = nodes.drawing(network)
    placed = [block for block, _ in drawing]
    return NetworkView(
        key,
        network,
        timelines(network),
        arenas_view(network),
        operators.columns(network),
        drawing,
        (nodes.column_width(placed), nodes.column_count(placed)),
        operators.headings(network, old),
        operators.rows(network, old),
        tuple(_sums(network, old)),
        tuple(_removed(network["operators"])),
        tuple(_kernels(network["operators"])),
    )


def _removed(listed: Sequence[_Json]) -> Iterator[RemovedRow]:
    found = [(at, each, each["removed"]) for at, each in enumerate(listed) if "removed" in each]
    for at, each, removed in found:
        channels = f"{removed['channels']:,} of {removed['of']:,}"
        figures = (numbers.count(removed[key]) for key in ("weights", "macs"))
        yield RemovedRow(at, each["operator"], each["name"], channels, *figures)
    if found:
        weights, macs = (numbers.count(sum(removed[key] for *_, removed in found)) for key in ("weights", "macs"))
        yield RemovedRow(None, "total", "", "", weights, macs)  # several layers have the same channels


def _kernels(listed: Sequence[_Json]) -> Iterator[KernelRow]:
    for at, each in enumerate(listed):
        for kernel in each.get("kernels", ()):
            sizes = (numbers.count(kernel.get(key)) for key in ("constants", "workspace"))
            # A fused operator has several nodes, and each kernel was considered for one of them.
            # Without `node`, a kernel is that of a single node.
            kind, name = (each[key].split(" + ")[kernel.get("node", 0)] for key in ("operator", "name"))
            yield KernelRow(at, kind, name, kernel["kernel"], kernel["chosen"], kernel["reason"], *sizes)
        if (rows := each.get("by_rows")) is not None:
            reason = f"{rows['memory']:,} instead of {rows['memory_alone']:,} bytes of the arena in use, for about "
            reason += f"{rows['instructions']:,} more instructions"
            yield KernelRow(at, each["operator"], each["name"], "row by row", True, reason, numbers.NONE, numbers.NONE)


def _sums(network: _Json, old: _Json | None) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the rest and the total, in the columns of ``operators.headings``."""
    rest, profile = network["rest"], network.get("profile") or {}
    listed = network["operators"]
    total = {kind: rest[kind] + sum(operator[kind] for operator in listed) for kind in FLASH_KINDS}
    macs = sum(operator.get("macs") or 0 for operator in listed)
    bound = sum(operator.get("bound") or 0 for operator in listed)
    columns = operators.headings(network, old)
    modelled, part = profile.get("modelled"), operators.modelled(network)
    rest_cycles = sum(modelled["rest"].values()) if modelled else None
    # Code that belongs to no operator also runs: its instructions are the rest of the profile.
    yield "no operator", _sum(columns, {**rest, "instructions": profile.get("rest"), "cycles": rest_cycles}, part=part)
    done = profile.get("instructions")
    # Per MAC only for the whole network: the rest of the code has none.
    per_mac = done / macs if done and macs else None
    figures = {**total, "MACs": macs, "instructions": done, "lower bound": bound}
    measured = operators.measured_heading(network)
    if measured:
        figures[measured] = profile["measured"]["cycles"]["median"]
    yield "total", _sum(columns, {**figures, "cycles": modelled and modelled["cycles"]}, per_mac, part)


def _sum(
    columns: Iterable[str],
    figures: Mapping[str, int | None],
    per_mac: float | None = None,
    part: TimedPart | None = None,
) -> tuple[str, ...]:
    texts = {name: numbers.count(value) for name, value in figures.items() if value is not None}
    cycles = figures.get("cycles")
    if part is not None and cycles is not None:
        texts["ms"] = part.milliseconds(cycles)
    return tuple(
        numbers.ratio(per_mac) if name == "instr. / MAC" and per_mac else texts.get(name, "") for name in columns
    )


def memory_bars(taken: _Json, owned: Iterable[_Json], old: _Json | None) -> Iterator[owners.Bar]:
    """Yield the bars of flash and RAM of an image or a model, with the bytes of the owners ``owned``.

    ``taken`` is the JSON of the image or the model, and ``old`` that of the other report, if there is one.
    """
    listed, budget = list(owned), taken.get("budget", {})
    for title, memory in (("Flash", "flash"), ("RAM", "ram")):
        change = Change(old[memory], taken[memory]) if old else None
        yield owners.bar(title, "bytes", owners.by_kind(listed, memory), budget.get(memory), change)
    for use in (each for each in taken.get("memories", ()) if "used" in each):
        arenas = sum(use["models"].values())
        title = f"{use['name']} ({rounded_size(use['size'])})" if use["size"] else use["name"]
        limit = budget.get("memories", {}).get(use["name"])
        yield owners.bar(title, "bytes", {ARENA: arenas, DATA: use["used"] - arenas}, limit)
