"""A project to start from: a whole firmware repo around one model or archive, which builds and runs on QEMU as it is.

``network`` reads what the project is about, ``sample`` has a case for it, ``main_c`` calls it; ``templates`` has the
ways to build, ``repo`` all files of one; ``staging`` puts all of them into the folder, or none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    from mlfbuild.usecases.init.project import (
        InitReport as InitReport,
        InitRequest as InitRequest,
        init_project as init_project,
    )
    from mlfbuild.usecases.init.templates import TEMPLATES as TEMPLATES
else:
    __getattr__ = lazy_attributes(__name__)
