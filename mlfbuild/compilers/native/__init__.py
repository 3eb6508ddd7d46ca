"""The built-in compiler: a model file becomes one C file and one header, with the kernels that they include.

    parse_model -> passes -> plan -> lower -> emit

``passes`` rewrite the graph, ``plan`` gives each tensor its place in memory, ``ops`` turn each node into a call of a
kernel with its constants, ``emit`` prints C. Each step is a pure function of the one before, so that the same model
gives the same bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    from mlfbuild.compilers.native.build import compile_graph as compile_graph, read_network as read_network
    from mlfbuild.compilers.native.compiler import NATIVE as NATIVE
else:
    __getattr__ = lazy_attributes(__name__)
