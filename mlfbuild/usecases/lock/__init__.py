"""``mlfbuild.lock``: write it, check it, and build exactly what it lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    from mlfbuild.usecases.lock.frozen import (
        check_lock as check_lock,
        freeze as freeze,
        freeze_beforehand as freeze_beforehand,
    )
    from mlfbuild.usecases.lock.locking import Locked as Locked, lock_project as lock_project
else:
    __getattr__ = lazy_attributes(__name__)
