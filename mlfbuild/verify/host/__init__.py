"""Run archives on this machine: compile their C into a shared object and call it with numpy arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.verify.host.model import Model, load, load_library
else:
    __getattr__ = lazy_attributes(__name__)
