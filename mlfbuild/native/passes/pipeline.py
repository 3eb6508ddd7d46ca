"""Run all passes in their order."""

from mlfbuild.native.graph import Graph
from mlfbuild.native.passes.fold_constants import fold_constants
from mlfbuild.native.passes.fold_scales import fold_scales
from mlfbuild.native.passes.fold_weight_offsets import fold_weight_offsets
from mlfbuild.native.passes.fuse_activation import fuse_activation
from mlfbuild.native.passes.fuse_padding import fuse_padding
from mlfbuild.native.passes.remove_dead_nodes import remove_dead_nodes
from mlfbuild.native.passes.remove_identities import remove_identities
from mlfbuild.native.passes.shift_states import shift_states
from mlfbuild.native.passes.widen_depthwise import widen_depthwise

PASSES = (
    fold_constants,
    remove_identities,
    shift_states,
    fold_weight_offsets,
    fuse_padding,
    widen_depthwise,
    fold_scales,
    fuse_activation,
    remove_dead_nodes,
)


def run_passes(graph: Graph) -> Graph:
    """Return ``graph`` after all passes; inputs and outputs keep their names, order and values."""
    for one_pass in PASSES:
        graph = one_pass(graph)
    return graph
