"""Move the RESHAPE behind a convolution to behind the elementwise operators that read it.

Exporters of one-dimensional convolutions write images of one row: a RESHAPE to four dimensions, the convolution and a
RESHAPE to three. Between two convolutions both are gone after this pass and ``remove_identities``, and an activation
or addition that stood between them stands beside the convolution, where other passes find it::

    Conv2D -> Reshape -> Relu -> Reshape -> Conv2D        becomes        Conv2D -> Relu -> Conv2D
"""

from __future__ import annotations

from dataclasses import replace

from mlfbuild.native.graph import Graph, Node, Tensor
from mlfbuild.native.graph.bases import Binary, Convolution, Unary
from mlfbuild.native.graph.ops import Quantize, Reshape
from mlfbuild.native.passes.remove_dead_nodes import remove_dead_nodes
from mlfbuild.native.passes.rewrite import rebuild

_ELEMENTWISE = Unary | Binary | Quantize


def sink_reshapes(graph: Graph) -> Graph:
    """Return ``graph`` with elementwise operators that compute in the shape of the convolution before them.

    A tensor that other nodes read keeps its name and shape: it becomes the output of a RESHAPE. A RESHAPE of a RESHAPE
    reads the first one's input.
    """
    sinking = _Sinking(graph)
    for node in graph.nodes:
        sinking.add(node)
    if not sinking.origins:
        return graph
    # A RESHAPE that nothing reads any more would be a second reader of a convolution.
    return remove_dead_nodes(rebuild(graph, sinking.nodes, sinking.images))


class _Sinking:
    """The nodes so far, and which tensors are images in another shape."""

    def __init__(self, graph: Graph) -> None:
        self.nodes: list[Node] = []
        self.images: list[Tensor] = []
        """New tensors."""
        self.origins: dict[str, Tensor] = {}
        """The image with the same elements, by the name of the output of a RESHAPE."""
        self._graph = graph
        self._shaped: dict[str, Tensor] = {}
        """Outputs of convolutions, and of operators that were moved, by name."""

    def add(self, node: Node) -> None:
        """Add ``node``, perhaps in another form."""
        output = self._graph.tensor(node.outputs[0])
        if isinstance(node.operator, Reshape):
            self._add_reshape(node, output)
            return
        if isinstance(node.operator, Convolution):
            self._shaped[output.name] = output
        elif isinstance(node.operator, _ELEMENTWISE):
            sources = [self._source(name) for name in node.inputs]
            shapes = {source.shape for source in sources if source is not None and not source.constant}
            if None not in sources and len(shapes) == 1 and shapes != {output.shape}:
                self._add_moved(node, [source.name for source in sources if source is not None], shapes.pop(), output)
                return
        self.nodes.append(node)

    def _add_reshape(self, node: Node, output: Tensor) -> None:
        name = str(node.inputs[0])
        image = self.origins.get(name) or self._shaped.get(name)
        if image is None:
            self.nodes.append(node)
            return
        if (image.dtype, image.quantization) == (output.dtype, output.quantization):
            self.origins[output.name] = image
        self.nodes.append(replace(node, operator=Reshape(), inputs=(image.name,)))

    def _source(self, name: str | None) -> Tensor | None:
        """Return the operand in the shape of an image: a reshaped image, or a constant that fits any shape."""
        if name is None or name in self.origins:
            return self.origins.get(str(name))
        tensor = self._graph.tensor(name)
        return tensor if tensor.constant and tensor.elements == 1 else None

    def _add_moved(self, node: Node, sources: list[str], shape: tuple[int, ...], output: Tensor) -> None:
        name = f"{output.name}_image"
        while name in self._graph.tensors:
            name += "_"
        image = replace(output, name=name, shape=shape)
        self.images.append(image)
        self._shaped[name] = self.origins[output.name] = image
        self.nodes.append(replace(node, inputs=tuple(sources), outputs=(name,)))
        self.nodes.append(Node(node.name, Reshape(), (name,), (output.name,)))
