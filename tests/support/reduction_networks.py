"""Networks of one reduction."""

from collections.abc import Callable, Mapping, Sequence

from hypothesis import strategies as st

from support.drawing import Drawing


def _reduction(name: str, *, same_scale: bool = False, greatest: int = 6) -> Callable[[Drawing], None]:
    def draw(d: Drawing) -> None:
        shape, affine = d.shape(greatest=greatest), d.affine()
        axes = d.draw(st.lists(st.integers(-len(shape), len(shape) - 1), min_size=1, max_size=len(shape)))
        source = d.input(shape, **affine)
        result = affine if same_scale else d.affine(0.004, 1)
        d.network.reduce(name, source, axes, keep_dims=d.choice(True, False), **result)

    return draw


def _arg(name: str) -> Callable[[Drawing], None]:
    def draw(d: Drawing) -> None:
        shape = d.shape(greatest=6)
        axis = d.size(-len(shape), len(shape) - 1)
        source, position = d.input(shape), axis % len(shape)
        if d.choice(True, False):
            d.values[-1] = d.values[-1] // 64 if d.quantized else d.values[-1].round()  # with equal elements
        # TensorFlow Lite Micro, the oracle for types other than int32, does not support int64 positions.
        kind = d.choice("int32", "int64") if d.dtype == "int32" else "int32"
        output = d.network.activation((*shape[:position], *shape[position + 1 :]), dtype=kind)
        inputs = [source, d.network.integers(axis)]
        tag = {"int32": 2, "int64": 4}[kind]
        d.network.operator(name, inputs, output, f"{name.title().replace('_', '')}Options", OutputType=tag)

    return draw


def _cumsum(d: Drawing) -> None:
    """Use int8 without zero point, because TensorFlow Lite Micro begins the sum with it."""
    shape, affine = d.shape(greatest=6), d.affine()
    axis = d.size(-len(shape), len(shape) - 1)
    source = d.input(shape, **({**affine, "zero_point": 0} if d.quantized else affine))
    output = d.network.activation(shape, **d.affine(0.05, 4))
    options = {"Exclusive": d.choice(True, False), "Reverse": d.choice(True, False)}
    d.network.operator("CUMSUM", [source, d.network.integers([axis])], output, "CumsumOptions", **options)


def _add_n(d: Drawing) -> None:
    """Use int8 without zero point, as for CUMSUM."""
    shape, affine = d.shape(), d.affine()
    affine = {**affine, "zero_point": 0} if d.quantized else affine
    sources = [d.input(shape, **affine) for _ in range(d.size(2, 5))]
    d.network.operator("ADD_N", sources, d.network.activation(shape, **d.affine(0.05, 4)), "AddNOptions")


def _l2_normalization(d: Drawing) -> None:
    source = d.input(d.shape(greatest=9))
    if d.choice(True, False, False):
        d.values[-1][...] = d.network.tensors[source].zero_points[0] if d.quantized else 0
    affine = {"scale": 1 / 128, "zero_point": 0} if d.quantized else {}
    d.network.unary("L2_NORMALIZATION", source, "L2NormOptions", {}, **affine)


def _topk(d: Drawing) -> None:
    shape = d.shape(greatest=7)
    source, count = d.input(shape), d.size(1, shape[-1])
    if d.choice(True, False):
        d.values[-1] = d.values[-1] // 64 if d.quantized else d.values[-1].round()  # with equal elements
    values = d.network.like(source, (*shape[:-1], count))
    positions = d.network.activation((*shape[:-1], count), dtype="int32")
    d.network.many("TOPK_V2", [source, d.network.integers([count])], [values, positions], "TopKV2Options")


OPERATORS: Mapping[str, Callable[[Drawing], None]] = {
    "ADD_N": _add_n, "ARG_MAX": _arg("ARG_MAX"), "ARG_MIN": _arg("ARG_MIN"), "CUMSUM": _cumsum,
    "L2_NORMALIZATION": _l2_normalization, "MEAN": _reduction("MEAN"), "REDUCE_ALL": _reduction("REDUCE_ALL"),
    "REDUCE_ANY": _reduction("REDUCE_ANY"), "REDUCE_MAX": _reduction("REDUCE_MAX", same_scale=True),
    "REDUCE_MIN": _reduction("REDUCE_MIN", same_scale=True), "REDUCE_PROD": _reduction("REDUCE_PROD", greatest=2),
    "SUM": _reduction("SUM"), "TOPK_V2": _topk,
}  # fmt: skip

TYPES: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(OPERATORS, ("int8", "float32")),
    **dict.fromkeys(("MEAN", "SUM"), ("int8", "int16", "float32")),
    **dict.fromkeys(("REDUCE_ANY", "REDUCE_PROD", "TOPK_V2"), ()),
    "REDUCE_ALL": ("bool",),
}
"""The element types of each operator that TensorFlow Lite Micro supports."""

LITERT: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("ARG_MAX", "ARG_MIN"), ("int32",)),
    **dict.fromkeys(("MEAN", "SUM"), ("int32", "int64")),
    **dict.fromkeys(("REDUCE_MAX", "REDUCE_MIN"), ("int16", "int32", "int64")),
    "ADD_N": ("int32",),
    "CUMSUM": ("int32", "int64"),
    "REDUCE_ANY": ("bool",),
    "REDUCE_PROD": ("int32", "int64", "float32"),
    "TOPK_V2": ("int8", "int16", "int32", "int64", "uint8", "float32"),
}
"""The element types of each operator that only LiteRT supports."""
