"""The built-in compiler: compile a model file to one C file, one header and the kernels that they include.

    parse_model -> passes -> lowering -> memory -> printing

``passes`` rewrites the graph. ``lowering`` turns each node into the call of a kernel with its constants; ``kernels``
has the C headers of the kernels. ``memory`` assigns each tensor an address. ``printing`` links the calls with these
addresses and prints C. Each step is a pure function of its inputs, so that the same model gives the same bytes.

For the graph executor, ``graph_executor`` replaces ``memory`` and prints packed functions, a graph and parameters.
``network`` records the operators and tensors of the result for reports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.native.build import arena_need, compile_graph, read_network
    from mlfbuild.native.compiler import NATIVE
    from mlfbuild.native.frontends.choices import Choices
    from mlfbuild.native.frontends.facts import model_facts
    from mlfbuild.native.frontends.model_files import SourceFiles
    from mlfbuild.native.frontends.models import parse_model, read_model
    from mlfbuild.native.graph.nodes import Graph, Node, evaluate_in_turn, evaluate_runs
    from mlfbuild.native.graph.tensors import Array, Tensor
    from mlfbuild.native.kernels import kernel_headers
    from mlfbuild.native.passes.streaming import windows_of
    from mlfbuild.native.printing.interface import interface_problems
    from mlfbuild.native.settings import DEFAULT_MEMORY, MEMORY, TREES
else:
    __getattr__ = lazy_attributes(__name__)
