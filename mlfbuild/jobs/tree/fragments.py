"""Print the fragments of a tree and of a target's folder, for CMake, Make, and SCons or RT-Thread.

The fragment of a tree defines a static library for each of its modules, with sources, include folders and the model's
own optimisation level; all other flags are left to the build that includes it. The fragment of a folder includes those
of its models. ``templates`` has their texts, and says in comments for the reader how each is used:

- ``mlf.cmake`` defines targets. CMake has one C compiler for a build, so that custom commands compile the code of other
  devices, with the compiler and the options of the device and nothing else.
- ``mlf.mk`` defines variables for all files, and rules with the flags of the makefile. Make splits names at spaces, so
  the fragment stops with an error message if the path of the tree or of a file in it contains one.
- ``SConscript`` works without mlfbuild. It compiles with a clone of the caller's environment, and returns ``CPPPATH``
  and ``LIBS`` in a dictionary, which the caller adds to its environment. In a build of RT-Thread it defines a group.

Objects are written outside the tree. Linkers search libraries from left to right, so a model's library comes before
those that it requires, and ``-lm`` is last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mlfbuild.jobs.tree.build_text import FRAGMENT, rendered
from mlfbuild.jobs.tree.parts import Part, Parts
from mlfbuild.jobs.tree.verification import HOST

MAKE_FRAGMENT = "mlf.mk"
SCONS_FRAGMENT = "SConscript"


def tree_fragments(parts: Parts, verified_on: str | None = None) -> dict[str, bytes]:
    """Return the fragments for the modules ``parts`` of a tree: file name -> content.

    With ``verified_on``, a board or ``host``, those for CMake and Make also define test firmware for each module.
    Raises ``InputFileError`` for a path that build files cannot contain.
    """
    # Contents of files are not part of a fragment, and can be large.
    parts = replace(parts, modules=tuple(replace(part, generated={}) for part in parts.modules))
    texts = {
        FRAGMENT: library_fragment(parts, verified_on),
        MAKE_FRAGMENT: make_fragment(parts, verified_on),
        SCONS_FRAGMENT: scons_fragment(parts),
    }
    return {name: text.encode() for name, text in texts.items()}


def folder_fragments(
    models: Sequence[str],
    board: str | None,
    cpu: str,
    *,
    placed: bool = False,
    budgeted: bool = False,
    switched: bool = False,
) -> dict[str, bytes]:
    """Return the fragments of a folder that include those of ``models`` and of ``board``: file name -> content.

    With ``placed``, they also include the fragment of the folder ``placement``. If ``budgeted``, links are compared
    with ``budgets.json``; CMake, which cannot do that without mlfbuild, prints the command. With ``switched``, SCons
    only calls models whose switch in the package's ``Kconfig`` is on, in RT-Thread.
    """
    targets = ["models", *(["board"] if board else []), *(["placement"] if placed else [])]
    values = {"models": models, "board": board, "placed": placed, "budgeted": budgeted}
    switches: dict[str, object] = {"switched": switched}
    if switched:
        from mlfbuild.jobs.tree.adapters.rt_thread import MODEL_SWITCH, PACKAGE_SWITCH

        switches |= {"package_switch": PACKAGE_SWITCH, "model_switch": MODEL_SWITCH}
    texts = {
        FRAGMENT: rendered("target.cmake", targets=targets, cpu=cpu, **values),
        MAKE_FRAGMENT: rendered("target.mk", suffix="_<model>", **values),
        SCONS_FRAGMENT: rendered("target.SConscript", **values, **switches),
    }
    return {name: text.encode() for name, text in texts.items()}


def library_fragment(parts: Parts, verified_on: str | None = None) -> str:
    """Return the text of ``mlf.cmake`` for the modules ``parts`` of a tree.

    It defines ``mlf::<module>`` for each module, and ``mlf::<model>`` for all if the project's name is different.
    """
    languages = "C CXX" if any(part.cxx for part in parts.modules) else "C"
    values = {"targets": parts.example, "languages": languages, "modules": parts.modules, "alias": parts.alias}
    text = rendered("fragment.cmake", **values)
    if verified_on is None:
        return text
    return text + rendered("verify.cmake", modules=parts.names, on_board=verified_on != HOST)


def make_fragment(parts: Parts, verified_on: str | None = None) -> str:
    """Return the text of ``mlf.mk`` for the modules ``parts`` of a tree, with test firmware for a board or ``host``.

    The variables ``MLF_INCLUDES``, ``MLF_SOURCES`` and ``MLF_LIBRARIES`` have the values for all modules of all trees
    that a makefile includes. With the suffix ``_<module>`` or ``_<model>`` they have those of one module or model.
    """
    paths = (path for part in parts.modules for path in (*part.files, *part.include_dirs, *_device_paths(part)))
    libraries = " ".join(f"$(MLF_LIBRARIES_{name})" for name in parts.names)
    return rendered(
        "fragment.mk",
        modules=parts.modules,
        alias=parts.alias,
        suffix=f"_{parts.example[0]}" if parts.example else "_<module>",
        # Make has no quoting of spaces in names of targets and prerequisites.
        spaced=next((path for path in paths if " " in path), None),
        private={part.name: _private_folders(part) for part in parts.modules},
        libraries={part.name: _all_libraries(part) for part in parts.modules},
        alias_libraries=_behind(libraries) if any(part.needs for part in parts.modules) else libraries,
        verified_on=verified_on,
        on_board=verified_on not in (None, HOST),
    )


def _device_paths(part: Part) -> list[str]:
    return [path for device in part.devices for path in (*device.sources, *device.objects, *device.include_dirs)]


def _private_folders(part: Part) -> tuple[str, ...]:
    """Return the include folders that only the module's sources see; those of kernels are in rules of their own."""
    return tuple(path for path in part.private_include_dirs if path not in part.kernel_include_dirs)


def _all_libraries(part: Part) -> str:
    own = f"$(MLF_LIBRARIES_{part.name})"
    return f"MLF_LIBRARIES := {_behind(f'$(MLF_LIBRARIES) {own}')}" if part.needs else f"MLF_LIBRARIES += {own}"


def _behind(libraries: str) -> str:
    """Return ``libraries`` of models, then those that they require, each once, because linkers search left to right."""
    return f"$(filter-out $(_mlf_needed),{libraries}) $(sort $(filter $(_mlf_needed),{libraries}))"


def scons_fragment(parts: Parts) -> str:
    """Return the text of ``SConscript`` for the modules ``parts`` of a tree."""
    used = {kind: any(getattr(part, kind) for part in parts.modules) for kind in ("blobs", "needs", "devices", "libm")}
    return rendered("fragment.SConscript", modules=parts.modules, example=parts.example, **used)
