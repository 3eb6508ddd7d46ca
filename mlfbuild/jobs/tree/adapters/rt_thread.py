"""Make the files of a package of RT-Thread; its SConscript is that of every folder, with the switches of ``Kconfig``.

Names of switches, and package.json: https://github.com/RT-Thread/rtthread-specification/blob/master/package.md
"""

from __future__ import annotations

import json

from mlfbuild.jobs.tree.adapters.package import DESCRIPTION, NAME, Package
from mlfbuild.jobs.tree.build_text import rendered

PACKAGE_SWITCH = "PKG_USING_MLF_MODELS"
MODEL_SWITCH = "MLF_MODELS_USING_"
"""The prefix of a model's switch, before its name in upper case."""
RESERVED = {"kconfig": "the package has a file Kconfig, which is the same name on a file system that ignores case"}

# package.json: the keys that RT-Thread's specification of packages requires.
_MANIFEST = {
    "name": NAME,
    "description": DESCRIPTION,
    "enable": PACKAGE_SWITCH,
    "keywords": ["machine-learning", "mlfbuild"],
    "category": "ai",
    "site": [],
}


def files(package: Package) -> dict[str, str]:
    """Return the files of the package without its SConscript: path -> text.

    The SConscript is the one that every tree has; ``Kconfig`` sets the switches that it reads.
    """
    values = {"models": package.models, "cpu": package.cpu}
    return {
        ".gitignore": rendered("rt-thread/gitignore", **values),
        "Kconfig": rendered("rt-thread/Kconfig", **values),
        "README.md": rendered("rt-thread/readme", **values),
        "package.json": json.dumps(_MANIFEST, indent=2) + "\n",
    }
