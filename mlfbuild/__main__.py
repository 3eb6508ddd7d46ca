"""``python -m mlfbuild`` is the command ``mlfbuild``."""

import sys

from mlfbuild.cli import main

sys.exit(main())
