"""Run archives on this machine: compile their C into a shared object and call it with numpy arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    from mlfbuild.verify.host.model import Model as Model, load as load, load_library as load_library
else:
    __getattr__ = lazy_attributes(__name__)
