"""The compiler that is TVM, as it was while it had Model Library Format: version 0.8 to 0.18, in a Python of its own.

    interpreter    which Python, and what TVM it has
    options        the options of the project file, each checked alone
    tvmc           the command line of ``tvmc compile``, which differs by version

TVM is never imported into this process: it is a program that leaves an archive, like those of ``compiler: command``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    from mlfbuild.compilers.tvm.compiler import TVM as TVM
    from mlfbuild.compilers.tvm.interpreter import find_interpreter as find_interpreter, tvm_version as tvm_version
else:
    __getattr__ = lazy_attributes(__name__)
