"""Merge several archives into one.

``archives`` is the sequence of steps; it also merges bundles, and renames generated files that have one path. ``names``
checks the names of modules, requirements and files of no module before any code is read. ``parts`` reads the symbols of
the code, lets one definition of ``__tvm_module_ctx`` serve all modules, and keeps the kernel headers of two versions of
mlfbuild apart. ``registry`` parses and merges function registries, and ``conflicts`` renames symbols
that may exist only once in an image::

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
