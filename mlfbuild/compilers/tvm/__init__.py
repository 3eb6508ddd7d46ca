"""The compiler ``tvm``: runs ``tvmc`` of TVM 0.8 to 0.18, the releases with Model Library Format.

    compiler    runs it, and reads the archive that it writes
    options     checks of the options in the project file
    tvmc        the Python that runs TVM, its version, and the command line of ``tvmc compile`` for that version

TVM is never imported into this process. It runs in another Python as a program that writes an archive, like those of
``compiler: command``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.compilers.tvm.compiler import TVM
    from mlfbuild.compilers.tvm.tvmc import find_interpreter, tvm_version
else:
    __getattr__ = lazy_attributes(__name__)
