"""Make the files of a package of RT-Thread; its SConscript is that of every folder, with the switches of ``Kconfig``.

Names of switches, and package.json: https://github.com/RT-Thread/rtthread-specification/blob/master/package.md
"""

from __future__ import annotations

import json

from mlfbuild.jobs.tree.adapters.package import DESCRIPTION, NAME, NOTICE, Package

PACKAGE_SWITCH = "PKG_USING_MLF_MODELS"
MODEL_SWITCH = "MLF_MODELS_USING_"
"""The prefix of a model's switch, before its name in upper case."""
RESERVED = {"kconfig": "the package has a file Kconfig, which is the same name on a file system that ignores case"}

_MANIFEST = {
    "name": NAME,
    "description": DESCRIPTION,
    "enable": PACKAGE_SWITCH,
    "keywords": ["machine-learning", "mlfbuild"],
    "category": "ai",
    "site": [],
}
_KCONFIG = """\
# {notice}
menuconfig {package}
    bool "Machine-learning models"
    default n

if {package}

{switches}endif
"""
_SWITCH = """\
config {switch}
    bool "Model {name}"
    default y
    help
      Links the model {name} into the image. Its code was made for {cpu}.

"""
_README = """\
<!-- {notice} -->
# {title}

A package of RT-Thread, written by `mlfbuild build --tree <this folder> --for rt-thread`. The code was made for {cpu}.

{models}
Put the folder into the BSP, beside `applications`: the BSP's `SConscript` calls those of its subfolders. (In
`packages`, which RT-Thread's `.gitignore` excludes, Git would not commit it, and scons finds it only if the package
manager has run.) Let the BSP's `Kconfig` read its switches:

    source "<this folder>/Kconfig"

Then choose the models in `menuconfig` ("{title}", symbol `{package}`) and run `scons`.
"""

_GITIGNORE = """\
# {notice}
# RT-Thread's .gitignore excludes files and folders with these names, which RECORD.json lists.
!*.mk
!*.o
!CMakeLists.txt
{models}"""


def files(package: Package) -> dict[str, str]:
    """Return the files of the package without its SConscript: path -> text."""
    switches = "".join(
        _SWITCH.format(switch=MODEL_SWITCH + model.switch, name=model.name, cpu=package.cpu) for model in package.models
    )
    rows = "".join(f"- `{model.name}` (`{MODEL_SWITCH}{model.switch}`)\n" for model in package.models)
    kept = "".join(f"!/{model.name}/\n" for model in package.models)
    title = "Machine-learning models"
    return {
        ".gitignore": _GITIGNORE.format(notice=NOTICE, models=kept),
        "Kconfig": _KCONFIG.format(notice=NOTICE, package=PACKAGE_SWITCH, switches=switches),
        "README.md": _README.format(notice=NOTICE, title=title, cpu=package.cpu, models=rows, package=PACKAGE_SWITCH),
        "package.json": json.dumps(_MANIFEST, indent=2) + "\n",
    }
