"""Stands in for RT-Thread's tools/building.py: the part of its interface that a package's SConscript uses.

As there, paths of CPPPATH go into one environment for all, relative ones from the folder of the process, and the
group's sources are compiled with it, and with the group's own flags.
"""

import os
import re

from SCons.Script import Environment, File

FLAGS = "-mcpu=cortex-m55 -mthumb -mfloat-abi=hard --specs=nano.specs"
Env = Environment(
    ENV={"PATH": os.environ["PATH"]},
    tools=["gcc", "gnulink", "ar", "gas"],
    CC="arm-none-eabi-gcc",
    CFLAGS=f"{FLAGS} -O0 -Wall -Wextra -Werror",
    LINKFLAGS=FLAGS,
)
Projects = []
BuildOptions = set()
if os.path.isfile("rtconfig.h"):  # noqa: PTH113 - as RT-Thread does it
    with open("rtconfig.h") as file:  # noqa: PTH123 - likewise
        BuildOptions.update(re.findall(r"^#define (\w+)", file.read(), re.MULTILINE))


def GetDepend(depend):  # noqa: N802 - its name
    return all(name in BuildOptions for name in depend if name)


def DefineGroup(name, src, depend, **parameters):  # noqa: N802 - its name
    if not GetDepend(depend):
        return []
    Projects.append(name)
    folders = [os.path.abspath(folder) for folder in parameters["CPPPATH"]]  # noqa: PTH100 - as RT-Thread does it
    Env.AppendUnique(CPPPATH=folders)
    if "LOCAL_CCFLAGS" not in parameters:
        return File(list(set(src)))
    local = Env.get("CCFLAGS", "") + parameters["LOCAL_CCFLAGS"]
    return [Env.Object(source, CCFLAGS=local) for source in dict.fromkeys(File(src))]
