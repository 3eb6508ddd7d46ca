"""The command `pyocd`, connected to an emulated board: python pyocd_command.py gdbserver --port 3333."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from pyocd.__main__ import main
from pyocd.core.helpers import ConnectHelper

from support.emulated_probe import emulated_probe

if __name__ == "__main__":
    protected = tuple(int(word, 0) for word in os.environ.get("PROTECTED_FLASH", "").split())
    with emulated_probe(protected) as probe:
        ConnectHelper.choose_probe = staticmethod(lambda **_: probe)  # type: ignore[method-assign]
        sys.exit(main())
