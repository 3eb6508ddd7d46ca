"""Run all passes in their order.

    fold_constants -> sink_reshapes -> remove_identities -> shift_states -> fold_weight_offsets -> fuse_padding
    -> widen_depthwise -> fold_scales -> fuse_activation -> integer_trees -> remove_dead_nodes

A pass is a function from a graph to a graph. A ``Graph`` checks itself when it is made, so a pass that breaks a rule of
an operator fails at once, and not in the C. Inputs, outputs and states keep their names and their order.

What makes each pass exact:

- ``fold_constants`` computes nodes with the numpy reference, which equals TensorFlow Lite Micro bit for bit in
  integers. In float32 the reference computes in double, so that a value may differ from the kernel's by rounding.
- ``sink_reshapes`` computes the same elements in another shape.
- ``remove_identities``, ``shift_states`` and ``fuse_padding`` only save copies. A PAD is fused only if it pads with the
  stored value of 0, because convolutions do that.
- ``fold_weight_offsets`` subtracts the zero point from weights that stay within int8: the sums have the same integers.
- ``widen_depthwise`` gives the same products and sums another name, because there is only one input channel. In
  float32 the other kernel may add them in another order.
- ``fuse_activation`` moves the clamp of a RELU into the operator before it. Both tensors must have the same scale and
  zero point: otherwise the RELU rescales, and its rounding would be lost.
- ``fold_scales`` is for float32 only: the weights are multiplied and rounded once, instead of each sum. In integers a
  factor would change the scales of the weights, and with them every rounding.
- ``integer_trees`` finds for each threshold the greatest stored integer that goes the same way.
- ``remove_dead_nodes`` removes only nodes from which no path leads to an output or a new state.

So no pass changes a number of an integer network. In float32, ``fold_constants``, ``widen_depthwise`` and above all
``fold_scales`` may change results by rounding, within the tolerance for float32; so may ``dead_channels``, below.

Why in this order:

1. ``fold_constants`` is first, because later passes look for constant weights. In files with float16 weights, or with
   float32 weights that are stored as int8, weights are results of a DEQUANTIZE.
2. ``remove_identities`` is before the passes that look at the reader of a tensor: an operator without effect between a
   convolution and its RELU would hide one from the other.
3. ``sink_reshapes`` is before ``remove_identities``, because it leaves RESHAPE nodes that keep the shape.
4. ``remove_dead_nodes`` is last, because ``fuse_padding`` leaves the PAD in the graph without a reader, and
   ``integer_trees`` the nodes that made floats of the features.

The others may change places. Each pass runs once; a second round could only find operators whose other reader was dead.

For example, with float32 tensors and weights that the file stores as int8::

    x[1,4,4,1] -> RESHAPE to the same shape -> PAD by 1 -> DEPTHWISE_CONV_2D to 8 channels -> MUL -> ADD -> RELU6 -> y

    fold_constants      removes the DEQUANTIZE of the weights      6 nodes are left
    remove_identities   removes RESHAPE                            5
    fuse_padding        moves the padding, which leaves PAD        5
    widen_depthwise     makes a CONV_2D with weights [8,3,3,1]     5
    fold_scales         removes MUL and ADD                        3
    fuse_activation     removes RELU6                              2
    remove_dead_nodes   removes PAD                                1: CONV_2D with padding, bias and RELU6

If ``remove_dead_nodes`` ran before ``fuse_padding``, PAD would stay and copy the image. If ``fold_constants`` ran after
``fold_scales``, MUL and ADD would stay.

Removing channels (``dead_channels``), splitting layers (``layer_parts``) and running rows together (``fusion``) are
not in the list: they depend on options, and the first and the last are compared with the network before them.
"""

from mlfbuild.native.graph import Graph
from mlfbuild.native.passes.fold_constants import fold_constants
from mlfbuild.native.passes.fold_scales import fold_scales
from mlfbuild.native.passes.fold_weight_offsets import fold_weight_offsets
from mlfbuild.native.passes.fuse_activation import fuse_activation
from mlfbuild.native.passes.fuse_padding import fuse_padding
from mlfbuild.native.passes.integer_trees import integer_trees
from mlfbuild.native.passes.remove_dead_nodes import remove_dead_nodes
from mlfbuild.native.passes.remove_identities import remove_identities
from mlfbuild.native.passes.shift_states import shift_states
from mlfbuild.native.passes.sink_reshapes import sink_reshapes
from mlfbuild.native.passes.widen_depthwise import widen_depthwise

PASSES = (
    fold_constants,
    sink_reshapes,
    remove_identities,
    shift_states,
    fold_weight_offsets,
    fuse_padding,
    widen_depthwise,
    fold_scales,
    fuse_activation,
    integer_trees,
    remove_dead_nodes,
)


def run_passes(graph: Graph, *, replaceable: bool = False) -> Graph:
    """Return ``graph`` after all passes; inputs and outputs keep their names, order and values.

    If trained values are ``replaceable``, weights keep their zero points, because the values decide about those.

    The order of the passes matters and is explained above. The graph that is given does not change, and a pass that
    does not apply leaves its nodes as they are.
    """
    for one_pass in PASSES:
        if not (replaceable and one_pass is fold_weight_offsets):
            graph = one_pass(graph)
    return graph
