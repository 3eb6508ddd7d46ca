"""Compute test vectors: inputs for a model, and the outputs of another implementation for them.

``judges`` runs other implementations, and ``recompute`` writes the files of a project::

    model file, inputs -> [judge] -> tests/kws.npz with its origin, src/sample.h with the first case
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.usecases.vectors.recompute import RecomputedVectors, recompute_vectors, renewed_vectors
else:
    __getattr__ = lazy_attributes(__name__)
