"""Merge several archives into one.

``archives`` is the sequence of steps. Before code is read, ``names``, ``bundles`` and ``files`` check or merge module
names, requirements and files. ``parts`` reads the symbols of the code. ``kernels`` keeps the headers of two versions of
mlfbuild apart. Then ``system_lib`` merges function registries (``registry`` parses them), and ``context``
and ``conflicts`` change the symbols that may exist only once in an image::

    library = merge([("kws.tar", kws), ("ad.tar", ad)])

A name is rewritten if only its archive can depend on it. Otherwise the archives are refused, with an error that has
both of them as its place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.archive.merge.archives import merge
else:
    __getattr__ = lazy_attributes(__name__)
