"""Print the parts of the SCons fragment that build the code of other devices."""

from __future__ import annotations

from collections.abc import Sequence

from mlfbuild.jobs.tree.devices import DevicePart

DEVICE_LIBRARY = """

def device_library(module, device):
    \"\"\"Return the library of a device, made with its compiler and options, and nothing of the environment.\"\"\"
    chosen = env.get(device["variable"] + "_COMPILER") or os.environ.get(device["environment"])
    compiler = chosen or device["compiler"]
    if not compiler:
        print("%s: codegen/%s is code for the device %s, without a compiler: set env[\\"%s_COMPILER\\"], and its "
              "options in env[\\"%s_FLAGS\\"]"
              % (Dir(".").srcnode().path, device["name"], device["name"], device["variable"], device["variable"]),
              file=sys.stderr)
        Exit(2)
    try:
        archiver = subprocess.check_output([compiler, "-print-prog-name=ar"], universal_newlines=True).strip()
    except (OSError, subprocess.CalledProcessError):  # the first compilation reports it
        archiver = ""
    folders = [Dir(folder).srcnode() for folder in device["include_dirs"]]
    command = [compiler] + Split(env.get(device["variable"] + "_FLAGS", device["flags"]))
    command += ["-I" + folder.path for folder in folders]
    objects = [
        env.Command(path + ".o", path, [command + ["-o", "$TARGET", "-c", "$SOURCE"]],
                    source_scanner=SourceFileScanner, CPPPATH=folders)
        for path in device["sources"]
    ]
    name = "libmlf_" + module["name"] + "." + device["name"] + ".a"
    return env.Command(name, objects + device["objects"], [[archiver or "ar", "rcs", "$TARGET", "$SOURCES"]])


"""
REFUSED_DEVICES = """\
        if module["devices"]:
            print("%s: has code for other devices, which RT-Thread's build cannot compile with other compilers"
                  % Dir(".").srcnode().path, file=sys.stderr)
            Exit(2)
"""
DEVICE_LIBRARIES = """\
        for device in module["devices"]:
            library = device_library(module, device)
            result.setdefault("MLF_DEVICE_LIBRARIES", []).extend(library)
            if device["linked"]:  # after the module, because linkers search from left to right
                result["LIBS"] += library
            elif objects:
                env.Requires(result["LIBS"][-1], library)
"""


def device_entries(devices: Sequence[DevicePart]) -> str:
    """Return the lines of a module's entry that describe ``devices``."""
    return f'        "devices": [\n{"".join(map(_entry, devices))}        ],\n'


def _entry(part: DevicePart) -> str:
    fields = {
        "name": part.name,
        "variable": part.variable,
        "compiler": part.tools.compiler,
        "environment": part.tools.variable,
        "flags": " ".join(part.flags),
        "sources": list(part.sources),
        "objects": list(part.objects),
        "include_dirs": list(part.include_dirs),
        "linked": part.tools.linked,
    }
    lines = "".join(f'                "{name}": {_value(value)},\n' for name, value in fields.items())
    return f"            {{\n{lines}            }},\n"


def _value(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return f'"{value}"' if isinstance(value, str) else str(value)
