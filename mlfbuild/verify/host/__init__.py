"""Runs archives on this machine: their C becomes a shared object, which numpy arrays go through."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    from mlfbuild.verify.host.model import Model as Model, load as load
else:
    __getattr__ = lazy_attributes(__name__)
