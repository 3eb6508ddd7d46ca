"""A project to start from: a whole firmware repo around one model or archive, which builds and runs on QEMU as it is.

``network`` reads what the project is about, ``sample`` has a case for it, ``main_c`` calls it; ``templates`` has the
ways to build, ``repo`` all files of one; ``staging`` puts all of them into the folder, or none.
"""

from mlfbuild.usecases.init.project import InitReport, InitRequest, init_project
from mlfbuild.usecases.init.templates import TEMPLATES

__all__ = ["TEMPLATES", "InitReport", "InitRequest", "init_project"]
