"""Changes of a small TFLite network, each of which makes it invalid in one place."""

from collections.abc import Callable

from support.tflite_builder import Network

Edit = Callable[[Network], object]


def _set(part: Callable[[Network], object], fields: dict[str, object]) -> Edit:
    def edit(net: Network) -> None:
        for name, value in fields.items():
            setattr(part(net), name, value)

    return edit


def edit_network(**fields: object) -> Edit:
    return _set(lambda net: net, fields)


def edit_tensor(index: int, **fields: object) -> Edit:
    return _set(lambda net: net.tensors[index], fields)


def edit_input(position: int, **fields: object) -> Edit:
    """Change the tensor that the first operator reads at ``position``."""
    return _set(lambda net: net.tensors[net.operators[0].inputs[position]], fields)


def edit_output(**fields: object) -> Edit:
    """Change the tensor that the first operator writes."""
    return _set(lambda net: net.tensors[net.operators[0].outputs[0]], fields)


def edit_operator(index: int, **fields: object) -> Edit:
    return _set(lambda net: net.operators[index], fields)


def edit_options(**options: object) -> Edit:
    """Change options of the first operator."""
    return lambda net: net.operators[0].options.update(options)


def computed(index: int) -> Edit:
    """Make a constant an input of the network."""
    return every(edit_tensor(index, content=b""), lambda net: net.inputs.append(index))


def every(*edits: Edit) -> Edit:
    return lambda net: [edit(net) for edit in edits]
