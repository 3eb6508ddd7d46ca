"""Make a folder of NuttX's applications, in ``nuttx``, with one Kconfig switch for each model.

The folder is linked into NuttX's ``apps``. Make writes objects next to sources, so that the folder has a file for each
source of the trees, which includes it.

Variables and functions: ``Application.mk``, ``Make.defs`` and ``CMakeLists.txt`` of https://github.com/apache/nuttx-apps
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from mlfbuild.core import UnsupportedModelError
from mlfbuild.jobs.tree.adapters.package import (
    NOTICE,
    LibraryFiles,
    ModelFiles,
    Package,
    refuse_objects,
    refuse_spaces,
    wrappers,
)
from mlfbuild.jobs.tree.build_text import lines, quoted

RESERVED = {"nuttx": "the folder of the application has this name"}
FOLDER = "nuttx"

_SYSTEM = "nuttx"
_KCONFIG = """\
# {notice}
menuconfig MLF_MODELS
\tbool "Machine-learning models"
\tdefault n

if MLF_MODELS

{switches}endif # MLF_MODELS
"""
_SWITCH = """\
config MLF_{switch}
\tbool "Model {name}"
\tdefault y
\thelp
\t  Links the model {name} into the image. Its code was made for {cpu}.

"""
_DEFS = """\
# {notice}
ifneq ($(CONFIG_MLF_MODELS),)
MLF_MODELS_DIR := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
CONFIGURED_APPS += $(MLF_MODELS_DIR)
{includes}endif
"""
_MAKEFILE = """\
# {notice}
include $(APPDIR)/Make.defs

CXXEXT := .cxx
{includes}{models}
include $(APPDIR)/Application.mk
"""
_CMAKE = """\
# {notice}
if(CONFIG_MLF_MODELS)
  get_filename_component(_mlf "${{CMAKE_CURRENT_LIST_DIR}}" REALPATH) # apps/external is a symbolic link to it
  get_filename_component(_mlf "${{_mlf}}" DIRECTORY)
{libraries}endif()
"""
_GITIGNORE = """\
# What make writes here
*.o
.built
.depend
.kconfig
Make.dep
"""


def files(package: Package) -> dict[str, str]:
    """Return the files of the folder: path -> text.

    Raises ``UnsupportedModelError`` for compiled objects, for names with spaces and for CMake packages.
    """
    _check(package)
    switches = "".join(
        _SWITCH.format(switch=model.switch, name=model.name, cpu=package.cpu) for model in package.models
    )
    public = _folders(package, public=True)
    sources = [path for model in package.models for path in model.sources]
    sources += [path for library in package.libraries for path in library.sources]
    made = wrappers(FOLDER, sources, ".cxx")
    return {
        "nuttx/Kconfig": _KCONFIG.format(notice=NOTICE, switches=switches),
        "nuttx/Make.defs": _DEFS.format(
            notice=NOTICE,
            includes=_flags(["CFLAGS", "CXXFLAGS"], (f"$(MLF_MODELS_DIR)/../{path}" for path in public)),
        ),
        "nuttx/Makefile": _MAKEFILE.format(
            notice=NOTICE,
            includes=_flags(["CFLAGS", "CXXFLAGS"], (f"../{path}" for path in _folders(package, public=False))),
            models="".join(_make(switches, owner) for switches, owner in _switched(package)),
        ),
        "nuttx/CMakeLists.txt": _CMAKE.format(
            notice=NOTICE,
            libraries="".join(_cmake(switches, owner, package) for switches, owner in _switched(package)),
        ),
        "nuttx/.gitignore": f"# {NOTICE}\n{_GITIGNORE}",
        **made,
    }


def _check(package: Package) -> None:
    for model in package.models:
        refuse_objects(_SYSTEM, model)
        refuse_spaces(
            _SYSTEM, f"model {model.name!r}", (*model.sources, *model.include_dirs, *model.private_include_dirs)
        )
    for library in package.libraries:
        refuse_spaces(_SYSTEM, f"dependency {library.name!r}", (*library.sources, *library.include_dirs))
    for dependency in package.dependencies:
        if dependency.package:
            raise UnsupportedModelError(
                "cmake-package-in-nuttx",
                place=f"dependency {dependency.name!r}",
                reason="is a CMake package, which NuttX's Makefiles cannot use",
                hint="name its sources in the project file, or remove --for nuttx",
            )


def _folders(package: Package, *, public: bool) -> list[str]:
    """Return the include folders for all applications, or the further ones for the sources of the package."""
    folders = [path for model in package.models for path in (model.include_dirs if public else model.runtime_dirs)]
    folders += [path for library in package.libraries if library.public is public for path in library.include_dirs]
    return list(dict.fromkeys(folders))


def _switched(package: Package) -> list[tuple[list[str], ModelFiles | LibraryFiles]]:
    """Return models and libraries with the switches that compile them, any of which is sufficient."""
    found: list[tuple[list[str], ModelFiles | LibraryFiles]] = [
        ([f"CONFIG_MLF_{model.switch}"], model) for model in package.models
    ]
    for library in package.libraries:
        needed = [f"CONFIG_MLF_{model.switch}" for model in package.models if library.name in model.needs]
        if needed and library.sources:
            found.append((needed, library))
    return found


def _flags(variables: Sequence[str], folders: Iterable[str]) -> str:
    paths = list(folders)
    return "".join(f"{variable} += ${{INCDIR_PREFIX}}{path}\n" for variable in variables for path in paths)


def _make(switches: Sequence[str], owner: ModelFiles | LibraryFiles) -> str:
    made = [path.removeprefix("nuttx/") for path in wrappers(FOLDER, owner.sources, ".cxx")]
    text = f"\nifneq ({''.join(f'$({switch})' for switch in switches)},)\n"
    text += "".join(f"{'CXXSRCS' if path.endswith('.cxx') else 'CSRCS'} += {path}\n" for path in made)
    for path in made if _options(owner) else ():
        kind = "CXXFLAGS" if path.endswith(".cxx") else "CFLAGS"
        text += f"{path}_{kind} += {' '.join(map(_shell, _options(owner)))}\n"
    return text + "endif\n"


def _options(owner: ModelFiles | LibraryFiles) -> Sequence[str]:
    return owner.options


def _shell(option: str) -> str:
    return shlex.quote(option).replace("$", "$$")


def _cmake(switches: Sequence[str], owner: ModelFiles | LibraryFiles, package: Package) -> str:
    name = f"mlf_{owner.name}" if isinstance(owner, ModelFiles) else f"mlf_dep_{owner.name}"
    text = f"\n  if({' OR '.join(switches)})\n    nuttx_add_library({name} STATIC)\n"
    text += _command("target_sources", f"{name} PRIVATE", owner.sources)
    libraries = [library for library in package.libraries if library.name in getattr(owner, "needs", ())]
    if isinstance(owner, ModelFiles):
        public: Sequence[str] = owner.include_dirs
        private = [*owner.runtime_dirs, *(path for library in libraries for path in library.include_dirs)]
    else:
        public, private = (owner.include_dirs, []) if owner.public else ([], [*owner.include_dirs])
    if _options(owner):
        options = " ".join(quoted(option) for option in _options(owner))
        text += f"    target_compile_options({name} PRIVATE {options})\n"
    text += _command("target_include_directories", f"{name} PRIVATE", [*public, *private])
    text += _command("set_property", "TARGET nuttx APPEND PROPERTY NUTTX_INCLUDE_DIRECTORIES", public)
    return text + "  endif()\n"


def _command(name: str, first: str, paths: Sequence[str]) -> str:
    arguments = lines([f"    {first}", *(f'    "${{_mlf}}/{path}"' for path in paths)])
    return f"    {name}(\n{arguments}    )\n" if paths else ""
