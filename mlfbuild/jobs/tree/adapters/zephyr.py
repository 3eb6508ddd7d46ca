"""Make the files of a module of Zephyr, with one library and one Kconfig switch per model.

Files: https://docs.zephyrproject.org/latest/develop/modules.html
"""

from __future__ import annotations

from collections.abc import Sequence

from mlfbuild.jobs.tree.adapters.package import NAME, NOTICE, LibraryFiles, ModelFiles, Package
from mlfbuild.jobs.tree.build_text import lines, quoted
from mlfbuild.jobs.tree.link_checks import CMAKE_CHECK

RESERVED = {"zephyr": "the folder of the module's files has this name"}

_MODULE = f"""\
# {NOTICE}
name: {NAME}
build:
  cmake: zephyr
  kconfig: zephyr/Kconfig
"""
_KCONFIG = """\
# {notice}
menu "Machine-learning models"

{switches}endmenu
"""
_SWITCH = """\
config MLF_{switch}
\tbool "Model {name}"
\tselect REQUIRES_FULL_LIBC # math.h
\thelp
\t  Links the model {name} into the image. Its code was made for {cpu}.

"""
_CMAKE = """\
# {notice}
set(_mlf "${{CMAKE_CURRENT_LIST_DIR}}/..")
"""
_CHECK = f"""
set_property(
  GLOBAL APPEND PROPERTY extra_post_build_commands # in the folder of the image
  COMMAND "${{CMAKE_COMMAND}}" -DIMAGE=${{KERNEL_ELF_NAME}} -DMAP=${{KERNEL_MAP_NAME}} -P "${{_mlf}}/{CMAKE_CHECK}"
)
"""
_LIBRARY = """
if(CONFIG_MLF_{switch})
  zephyr_library_named(mlf_{name})
"""


def files(package: Package) -> dict[str, str]:
    """Return the files of the module: path -> text."""
    switches = "".join(
        _SWITCH.format(switch=model.switch, name=model.name, cpu=package.cpu) for model in package.models
    )
    return {
        "zephyr/module.yml": _MODULE,
        "zephyr/Kconfig": _KCONFIG.format(notice=NOTICE, switches=switches),
        "zephyr/CMakeLists.txt": _CMAKE.format(notice=NOTICE)
        + "".join(_library(model, package) for model in package.models)
        + "".join(_dependency(library, package) for library in package.libraries)
        + (_CHECK if package.budgeted else ""),
    }


def _dependency(library: LibraryFiles, package: Package) -> str:
    """Return the commands for a library that is part of the image if one of the models that require it is."""
    switches = " OR ".join(f"CONFIG_MLF_{model.switch}" for model in package.models if library.name in model.needs)
    if not switches:
        return ""
    text = f"\nif({switches})\n  zephyr_library_named(mlf_dep_{library.name})\n"
    text += _command("zephyr_library_sources", library.sources)
    if library.public:
        text += _command("zephyr_include_directories", library.include_dirs)
    text += _command("zephyr_library_include_directories", library.include_dirs)
    options = " ".join(quoted(option) for option in library.options)
    return text + f"  zephyr_library_compile_options({options})\nendif()\n"


def _library(model: ModelFiles, package: Package) -> str:
    text = _LIBRARY.format(switch=model.switch, name=model.name)
    text += _command("zephyr_library_sources", [*model.sources, *model.objects])
    text += _command("zephyr_include_directories", model.include_dirs)
    libraries = [library for library in package.libraries if library.name in model.needs]
    needed = [path for library in libraries for path in library.include_dirs]
    text += _command("zephyr_library_include_directories", [*model.private_include_dirs, *needed])
    for dependency in package.dependencies:
        if dependency.package and dependency.name in model.needs:
            text += f"  zephyr_library_link_libraries({dependency.target})\n"
    if model.options:
        text += f"  zephyr_library_compile_options({' '.join(model.options)}) # its own, also in debug builds\n"
    if model.objects:
        text += _command("set_source_files_properties", model.objects, "PROPERTIES EXTERNAL_OBJECT TRUE")
    if not model.sources:
        text += f"  set_target_properties(mlf_{model.name} PROPERTIES LINKER_LANGUAGE C)\n"
    return text + "endif()\n"


def _command(name: str, paths: Sequence[str], more: str = "") -> str:
    arguments = lines([*(f'  "${{_mlf}}/{path}"' for path in paths), *([f"  {more}"] if more else [])])
    return f"  {name}(\n{arguments}  )\n" if paths else ""
