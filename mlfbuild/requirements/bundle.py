"""Bundle required libraries in an archive, and read them back, so that a firmware build needs only one file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mlfbuild.core import InputFileError, UnsupportedModelError, UsageError, quoted
from mlfbuild.library import (
    FOLDER,
    ExternalDependency,
    Library,
    Module,
    Requirement,
    ResolvedLibrary,
    bundle_dependency,
    bundle_files,
    bundle_folder,
    bundle_name,
    bundle_names,
    bundles,
    description_path,
    requirements_of,
    short_name,
    unsafe_option,
)
from mlfbuild.requirements.command_lines import library_title


def bundled(library: Library, resolved: Mapping[str, ResolvedLibrary]) -> Library:
    """Return ``library`` with those of ``resolved``, by short name, that its modules require.

    Each is added whole: its files, its licence and its origin. The same arguments give the same bytes. Raises
    ``UsageError`` for a library that an archive may not contain, and if other files are in its place.
    """
    required = {name for module in library.modules for name in _required(module)} & resolved.keys()
    for name in sorted(required):
        # In alphabetical order, because the files of the archive are in the order in which they were added.
        library = _with_bundle(library, name, resolved[name])
    return library


def bundled_library(library: Library, requirement: Requirement, where: str) -> ResolvedLibrary:
    """Return the bundle for ``requirement`` of one of the modules of ``library``, whose ``url_type`` is ``mlf_path``.

    ``where`` names the archive in messages. Raises ``InputFileError`` if the archive does not describe the folder, or
    as ``bundles``.
    """
    folder = ExternalDependency(requirement.name, requirement.url, requirement.url_type)
    found = bundles(library, where).get(bundle_name(folder))
    place = f"{where}: dependency {quoted(requirement.name)}"
    if found is None:
        raise InputFileError(
            "bundle-not-described",
            place=place,
            reason=f"the archive does not describe the folder {quoted(requirement.url)}",
            hint="bundle it with mlfbuild, or add a provider to the project file",
        )
    if found.name != requirement.name:
        raise InputFileError(
            "bundle-other-name",
            place=place,
            reason=f"the folder {quoted(requirement.url)} holds the library {found.name}",
            hint="bundle the library again",
        )
    return found


def bundled_libraries(library: Library, module: Module, where: str) -> tuple[ResolvedLibrary, ...]:
    """Return the libraries that ``module`` of ``library`` requires, all of which its archive ``where`` must bundle.

    For archives that are used without a project. Raises ``UnsupportedModelError`` for a library that is not in the
    archive, and ``InputFileError`` as ``bundles``.
    """
    # Most archives bundle nothing.
    found = bundles(library, where) if bundle_names(library) else {}
    required = requirements_of(module)
    for one in required:
        if one.name not in found:
            raise UnsupportedModelError(
                "library-not-bundled",
                place=f"{where}: module {module.name!r}",
                reason=f"requires {library_title(one.name)} {one.version}".rstrip() + ", which is not in the archive",
                hint=f"build it in a project that provides {one.name} with `bundle: true`, and use that archive",
            )
    return tuple(found[one.name] for one in required)


def _required(module: Module) -> list[str]:
    return [requirement.name for requirement in requirements_of(module)]


def _with_bundle(library: Library, name: str, resolved: ResolvedLibrary) -> Library:
    _check(resolved)
    # Files of an earlier bundle are replaced; any others in the folder would be mixed into the library.
    others = [file for file in library.other_files if not _is_of(name, str(file.path))]
    if len(others) != len(library.other_files) and name not in bundles(library, "archive"):
        raise UsageError(
            "bundle-folder-taken",
            place=f"dependency {name}",
            reason=f"the archive has other files in {bundle_folder(name)}",
            hint="remove them first",
        )
    return replace(
        library,
        modules=tuple(_with_entry(each, resolved) if name in _required(each) else each for each in library.modules),
        other_files=(*others, *bundle_files(resolved)),
    )


def _is_of(name: str, path: str) -> bool:
    return path == str(description_path(name)) or path.startswith(f"{bundle_folder(name)}/")


def _with_entry(module: Module, resolved: ResolvedLibrary) -> Module:
    """Return ``module`` whose metadata names the folder of the bundle, with the unknown fields of the entry so far."""
    kept = [item for item in module.external_dependencies if short_name(item.short_name) != resolved.name]
    replaced = [item for item in module.external_dependencies if item not in kept]
    # Fields that a later version of TVM or another tool wrote are kept, as everywhere in the format.
    unknown = {field.place: field for item in replaced for field in item.unknown}
    entry = replace(bundle_dependency(resolved), unknown=tuple(unknown[place] for place in sorted(unknown)))
    return replace(module, external_dependencies=(*kept, entry))


def _check(resolved: ResolvedLibrary) -> None:
    """Refuse a library that would be refused when the archive is read."""
    # With slashes in it, a name would leave the folder of bundles; with .json at its end, its folder could be called
    # like a description.
    if str(bundle_folder(resolved.name).parent) != FOLDER or resolved.name.endswith(".json"):
        raise UsageError(
            "bundle-name-invalid",
            place=f"dependency {quoted(resolved.name)}",
            reason="the name is not a valid name of a folder",
            hint="use letters, digits and hyphens",
        )
    unsafe = unsafe_option(resolved.compile_options)
    if unsafe is not None:
        reason = f"an archive may not contain the compile option {quoted(unsafe)}"
        hint = "remove the option, or set `bundle: false`"
        raise UsageError("bundle-option-refused", place=f"dependency {resolved.name}", reason=reason, hint=hint)
