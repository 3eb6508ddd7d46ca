"""The limit of what loops, branches, functions and subgraphs of a model may become.

A graph has no loops and no functions: everything is unrolled and written out, so that memory and time are known at
compile time. That makes files dangerous. A loop of a million trips is a few bytes; a function that calls another one
twice doubles it, and thirty such functions are a billion nodes. Without a limit the compiler would run out of memory
before it reports anything.

The rules:

1. All kinds of expansion of one model draw on one budget: in ONNX functions (``onnx/normalise``), If, Loop and Scan
   (``onnx/control_flow``), in TFLite IF and WHILE (``tflite/control_flow``). So no combination of them escapes it, such
   as a loop over a function.
2. ``take`` is called before nodes are made, with their number. A number of any size then costs nothing.
3. Each iteration or call takes at least one, even if it is empty: even a loop whose body is empty must end.
4. The budget is not an option. The limit is far above networks for microcontrollers, whose flash has the call of each
   node.

``MOST_NODES`` is 16,384. Networks for microcontrollers have some hundreds of nodes; a recurrent layer that an exporter
wrote as a loop of 100 steps with 20 nodes each takes 2,000.

For example, Four(x) = Twice(Twice(x)), Twice(a) = Add(a, a): writing out Four takes 4, the nodes in Four and in both
Twice, although only two Adds remain. The count is an upper bound, computed without writing anything.

It does not limit the operators that a file has itself, which are as large as the file. Nor does it count two kinds of
repetition that multiply one node by a small constant: ``onnx/declared_shapes`` makes at most 8 copies of a node with a
computed parameter, which have no graphs and are not copied again, and 3 nodes to select each; a recurrent layer is
unrolled up to 64 steps (``onnx/conversion/recurrent``). Bytes of constants have a budget of their own
(``graph/constant_budget``), which grows with the file and is an option.
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
        # Not restored after the error: a caller that goes on to collect other errors has no budget left either.
        self.left -= nodes
        if self.left < 0:
            raise UnsupportedModelError(
                "expansion-too-large",
                place=place,
                reason=f"the loops, branches and functions of the model become more than {MOST_NODES} nodes",
                hint="export a smaller model, such as one step of a loop that the firmware repeats",
            )
