"""``mlfbuild.lock``: write it, check it, and build exactly what it lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.usecases.lock.frozen import check_lock, freeze, freeze_beforehand
    from mlfbuild.usecases.lock.locking import Locked, lock_project
else:
    __getattr__ = lazy_attributes(__name__)
