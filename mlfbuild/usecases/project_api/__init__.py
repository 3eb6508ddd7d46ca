"""Serve the Project API of microTVM, so that TVM generates, builds, flashes and drives projects of mlfbuild.

    TVM's client -> two pipes -> microtvm_api_server.py -> mlfbuild project-api -> QEMU, a runner or a serial port

``rpc`` speaks JSON-RPC 2.0 over the pipes, ``handler`` has the methods of the API and the byte streams to a
running firmware, and ``options`` the project options that the server offers. ``generated`` writes a project for an
archive, with a firmware that answers TVM's sessions (``runtime/rpc``) or one that runs the model once.

The protocol is that of TVM 0.8 to 0.18 (``python/tvm/micro/project_api``): version 1. Nothing here imports TVM.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.usecases.project_api.handler import serve_folder
    from mlfbuild.usecases.project_api.projects import write_server
else:
    __getattr__ = lazy_attributes(__name__)
