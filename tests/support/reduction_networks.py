"""Networks of one operator that makes one element of many."""

from __future__ import annotations

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
        output = d.network.activation((*shape[:position], *shape[position + 1 :]), dtype="int32")
        inputs = [source, d.network.integers(axis)]
        d.network.operator(name, inputs, output, f"{name.title().replace('_', '')}Options", OutputType=2)

    return draw


def _l2_normalization(d: Drawing) -> None:
    source = d.input(d.shape(greatest=9))
    if d.choice(True, False, False):
        d.values[-1][...] = d.network.tensors[source].zero_points[0] if d.quantized else 0
    affine = {"scale": 1 / 128, "zero_point": 0} if d.quantized else {}
    d.network.unary("L2_NORMALIZATION", source, "L2NormOptions", {}, **affine)


OPERATORS: Mapping[str, Callable[[Drawing], None]] = {
    "ARG_MAX": _arg("ARG_MAX"),
    "ARG_MIN": _arg("ARG_MIN"),
    "L2_NORMALIZATION": _l2_normalization,
    "MEAN": _reduction("MEAN"),
    "REDUCE_ALL": _reduction("REDUCE_ALL"),
    "REDUCE_ANY": _reduction("REDUCE_ANY"),
    "REDUCE_MAX": _reduction("REDUCE_MAX", same_scale=True),
    "REDUCE_MIN": _reduction("REDUCE_MIN", same_scale=True),
    "REDUCE_PROD": _reduction("REDUCE_PROD", greatest=2),
    "SUM": _reduction("SUM"),
}

TYPES: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(OPERATORS, ("int8", "float32")),
    **dict.fromkeys(("MEAN", "SUM"), ("int8", "int16", "float32")),
    **dict.fromkeys(("REDUCE_ANY", "REDUCE_PROD"), ()),
    "REDUCE_ALL": ("bool",),
}
"""Those of TensorFlow Lite Micro."""

LITERT: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("ARG_MAX", "ARG_MIN"), ("int32",)),
    **dict.fromkeys(("MEAN", "SUM"), ("int32", "int64")),
    **dict.fromkeys(("REDUCE_MAX", "REDUCE_MIN"), ("int16", "int32", "int64")),
    "REDUCE_ANY": ("bool",),
    "REDUCE_PROD": ("int32", "int64", "float32"),
}
"""Those that LiteRT has beside them."""
