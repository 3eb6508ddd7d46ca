"""The request to a quantisation engine, which travels to the process of the engine."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlfbuild.core import UsageError, listed, quoted, suggestion
from mlfbuild.datasets import open_data
from mlfbuild.library import TensorInfo
from mlfbuild.quantization.quantize_keys import QuantizeKeys

Node = tuple[str, tuple[str, ...]]
"""The kind of an operator, and the names by which ``keep-float`` may mean it, its outputs among them."""
_SHOWN = 8
"""Names in a message."""


@dataclass(frozen=True)
class EngineRequest:
    """The work of one engine on one file."""

    source: Path
    keys: QuantizeKeys
    inputs: tuple[TensorInfo, ...]
    cases: int
    out: Path

    def feeds(self) -> Iterator[tuple[Any, ...]]:
        """Yield the arrays of one case after the other, in the order of the inputs."""
        for batch in open_data(self.keys.calibration, self.inputs).batches(16):
            yield from zip(*batch.inputs, strict=True)

    def kept(self, nodes: Sequence[Node]) -> list[Node]:
        """Return those of ``nodes`` that ``keep-float`` names; raises ``UsageError`` for a name of none of them."""
        for word in self.keys.keep_float:
            if not any(_means(word, node) for node in nodes):
                known = sorted({name for kind, names in nodes for name in (kind, *names)})
                near = suggestion(word, known) or f"; it has {listed(known[:_SHOWN])}"
                raise UsageError(
                    "keep-float-unknown",
                    place=f"{self.source}: keep-float",
                    reason=f"the network has no node and no operator {quoted(word)}{near}",
                    hint="correct the name",
                )
        return [node for node in nodes if any(_means(word, node) for word in self.keys.keep_float)]

    def method(self, offered: Mapping[str, Any]) -> Any:
        """Return what the installed engine calls the method; raises ``UsageError`` if it does not have it."""
        if self.keys.method not in offered:
            raise UsageError(
                "quantize-method",
                place=f"{self.source}: method {self.keys.method}",
                reason=f"the installed engine has {listed([*offered])}",
                hint="choose one of them, or install another version",
            )
        return offered[self.keys.method]

    def reasons(self, nodes: Sequence[Node], supported: Collection[str], engine: str) -> dict[str, str]:
        """Return why each of ``nodes`` stays in float32 that does, by all of its names."""
        other = [node for node in nodes if node[0] not in supported]
        found = {name: f"{engine} does not quantise {kind}" for kind, names in other for name in names}
        return {**found, **{name: "keep-float names it" for _, names in self.kept(nodes) for name in names}}


def _means(word: str, node: Node) -> bool:
    return word in node[1] or word.lower() == node[0].lower()
