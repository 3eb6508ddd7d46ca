"""Create a firmware project around one model or archive, which builds and runs on QEMU as it is.

``project_network`` reads the model, ``sample`` provides cases for it, which ``cases`` computes, and ``main_c`` fills in
the C that calls it. ``devices`` are the targets. ``templates`` lists the ways to build, ``user_template`` reads those
of users, ``repo`` makes all files of a project, and ``staging`` writes all of them to the folder, or none. ``renewal``
finds files in a project that another version wrote.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.usecases.init.main_c import call_c, sample_arrays, sample_h
    from mlfbuild.usecases.init.project import (
        DEFAULT_BOARD, InitReport, InitRequest, init_cmake, init_project, init_scons, init_update,
    )
    from mlfbuild.usecases.init.project_network import callable_library
    from mlfbuild.usecases.init.renewal import outdated_files, outdated_lines
    from mlfbuild.usecases.init.repo import interface_names
    from mlfbuild.usecases.init.sample import CASES, Sample, own_origin, own_outputs, random_inputs
    from mlfbuild.usecases.init.staging import staged
    from mlfbuild.usecases.init.templates import (
        PROJECT_API, PROJECT_API_EXAMPLE, PROJECT_API_SERVER, TEMPLATES, project_api_server,
    )
    from mlfbuild.usecases.init.user_template import read_template
else:
    __getattr__ = lazy_attributes(__name__)
