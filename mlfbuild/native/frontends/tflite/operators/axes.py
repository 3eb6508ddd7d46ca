"""Constant inputs of several operators: axes, and sizes for every dimension."""

from __future__ import annotations

from mlfbuild.native.frontends.tflite.operators.site import TfliteSite


def dimension(site: TfliteSite, axis: int, rank: int) -> int:
    """Return ``axis`` counted from 0, of ``rank`` dimensions."""
    if not -rank <= axis < rank:
        raise site.wrong(f"axis {axis} is not one of {rank} dimensions")
    return axis % rank


def only_axis(site: TfliteSite, index: int, rank: int) -> int:
    """Return the one axis in input ``index``, counted from 0, of ``rank`` dimensions."""
    found = site.constant(index, "axis")
    if found.size != 1:
        raise site.wrong(f"has {found.size} axes, takes 1")
    return dimension(site, int(found[0]), rank)


def axes(site: TfliteSite) -> list[int]:
    """Return the axes in the second input, counted from 0."""
    rank = len(site.input(0).shape)
    found = [int(axis) for axis in site.constant(1, "axes")]
    for axis in found:
        if not -rank <= axis < rank:
            raise site.wrong(f"axis {axis} is not a dimension of {site.input(0)}")
    return [axis % rank for axis in found]


def one_axis(site: TfliteSite) -> int:
    """Return the one axis in the second input, counted from 0."""
    found = axes(site)
    if len(found) != 1:
        raise site.wrong(f"has {len(found)} axes, takes 1")
    return found[0]


def integers(site: TfliteSite, index: int, what: str, count: int) -> list[int]:
    """Return the ``count`` elements of the constant input ``index``, which messages call ``what``."""
    values = [int(value) for value in site.constant(index, what)]
    if len(values) != count:
        raise site.wrong(f"the {what} {values} does not fit {site.input(0)}")
    return values


def check_shape(site: TfliteSite) -> None:
    """Refuse an output whose shape is not the one in input 1."""
    wanted = tuple(int(size) for size in site.constant(1, "shape"))
    if wanted != site.output().shape:
        raise site.misshapen(wanted)
