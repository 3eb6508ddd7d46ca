"""The limit of what loops, branches, functions and subgraphs of a model may become.

A file of a kilobyte can describe millions of operators, because a function that calls another one twice doubles it.
All kinds of expansion draw on one budget, so that no combination of them escapes it.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlfbuild.core import UnsupportedModelError

MOST_NODES = 1 << 14
"""Nodes that all expansions of a model together may make; networks for microcontrollers have some hundreds."""


@dataclass
class NodeBudget:
    """Counts the nodes that are made from others."""

    left: int = MOST_NODES

    def take(self, nodes: int, place: str) -> None:
        """Count ``nodes`` made from the one at ``place``; raises ``UnsupportedModelError`` if they are too many.

        Call it before the nodes are made: a number of any size costs nothing then.
        """
        self.left -= nodes
        if self.left < 0:
            raise UnsupportedModelError(
                "expansion-too-large",
                place=place,
                reason=f"the loops, branches and functions of the model become more than {MOST_NODES} nodes",
                hint="export a smaller model, such as one step of a loop that the firmware repeats",
            )
