"""The table of GDB servers, which the project file names in ``runner.server`` and ``runners`` drives.

Servers differ in the ``monitor`` commands that reset and halt a device, and in how they let it run again at the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from mlfbuild.targets.data_files import rows
from mlfbuild.targets.types import GdbServer

GDB_SERVERS: Mapping[str, GdbServer] = MappingProxyType(dict(rows("gdb_servers", GdbServer)))
"""Every server by its name in the project file."""
