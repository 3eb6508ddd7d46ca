"""Stands in for RT-Thread's tools/building.py: the part of its interface that a package's SConscript uses.

As there, paths of CPPPATH go into one environment for all, relative ones from the folder of the process, and the
group's sources are compiled with it.
"""

import os

from SCons.Script import Environment, File

FLAGS = "-mcpu=cortex-m55 -mthumb -mfloat-abi=hard --specs=nano.specs"
Env = Environment(
    ENV={"PATH": os.environ["PATH"]},
    tools=["gcc", "gnulink", "ar", "gas"],
    CC="arm-none-eabi-gcc",
    CFLAGS=f"{FLAGS} -O2 -Wall -Wextra -Werror",
    LINKFLAGS=FLAGS,
)
Projects = []


def DefineGroup(name, src, depend, **parameters):  # noqa: N802, ARG001 - its name and parameters
    Projects.append(name)
    folders = [os.path.abspath(folder) for folder in parameters["CPPPATH"]]  # noqa: PTH100 - as RT-Thread does it
    Env.AppendUnique(CPPPATH=folders)
    return File(list(set(src)))
