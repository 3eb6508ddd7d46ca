"""Dependencies into an archive, and out of it again: one file is then everything that a firmware build needs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields, replace

from mlfbuild.c_analysis import LINKED_SUFFIXES, TEXT_SUFFIXES
from mlfbuild.core import InputFileError, UsageError, quoted
from mlfbuild.library import (
    FOLDER,
    Bundle,
    BundleFacts,
    ExternalDependency,
    Library,
    Module,
    Wish,
    bundle_dependency,
    bundle_files,
    bundle_folder,
    bundle_name,
    bundles,
    description_path,
    short_name,
    unsafe_option,
    wishes,
)
from mlfbuild.requirements.needs import needed
from mlfbuild.requirements.types import Source

_SAME = {field.name for field in fields(BundleFacts)} & {field.name for field in fields(Source)}


def bundled(library: Library, sources: Mapping[str, Source]) -> Library:
    """Return ``library`` with what its modules need of ``sources`` inside: files, licences, and where to find them.

    ``sources`` are whole libraries by short name; those that no module wants are left out. The same library and
    sources give the same bytes. Raises ``UsageError`` for a source that no archive may take along, or where the
    library has other files in its place.
    """
    wanted = {name for module in library.modules for name in _wanted(module)} & sources.keys()
    for name in sorted(wanted):
        library = _with_bundle(library, name, sources[name])
    return library


def bundled_sources(library: Library, where: str = "archive") -> dict[str, Source]:
    """Return what ``library`` brings along, by short name; its modules are satisfied with that.

    ``where`` names the archive in messages. Raises ``InputFileError`` where what it says of a bundle is unsound.
    """
    return {name: _source(bundle) for name, bundle in bundles(library, where).items()}


def bundled_source(library: Library, wish: Wish, where: str) -> Source:
    """Return what ``library`` brings along for ``wish``, one of its modules' whose ``url_type`` is ``mlf_path``.

    Raises ``InputFileError`` as ``bundled_sources``, and where the archive does not say what its folder holds.
    """
    folder = ExternalDependency(wish.name, wish.url, wish.url_type)
    source = bundled_sources(library, where).get(bundle_name(folder))
    if source is None:
        raise InputFileError(
            f"{where}: dependency {quoted(wish.name)}: is to lie in {quoted(wish.url)}, and nothing beside that says "
            "what to compile; bundle it with mlfbuild, or let the project provide it"
        )
    if source.name != wish.name:
        raise InputFileError(
            f"{where}: dependency {quoted(wish.name)}: {quoted(wish.url)} is {source.name}, which has another name; "
            "bundle it again"
        )
    return source


def _wanted(module: Module) -> Iterator[str]:
    return (wish.name for wish in wishes(module))


def _with_bundle(library: Library, name: str, source: Source) -> Library:
    modules = [module for module in library.modules if name in _wanted(module)]
    part = needed(source, _code(modules))
    facts = _facts(part)
    _check(facts)
    others = [file for file in library.other_files if not _is_of(name, str(file.path))]
    if len(others) != len(library.other_files) and name not in bundles(library, "archive"):
        raise UsageError(f"dependency {name}: the archive has other files in {bundle_folder(name)}; remove them first")
    bundle = Bundle(facts, part.files)
    return replace(
        library,
        modules=tuple(_with_entry(module, facts) if module in modules else module for module in library.modules),
        other_files=(*others, *bundle_files(bundle)),
    )


def _is_of(name: str, path: str) -> bool:
    return path == str(description_path(name)) or path.startswith(f"{bundle_folder(name)}/")


def _with_entry(module: Module, facts: BundleFacts) -> Module:
    """Return ``module`` with its entry for the dependency saying where that is now."""
    kept = [item for item in module.external_dependencies if short_name(item.short_name) != facts.name]
    return replace(module, external_dependencies=(*kept, bundle_dependency(facts)))


def _code(modules: Collection[Module]) -> Iterator[bytes]:
    for module in modules:
        for file in module.codegen:
            if file.path.suffix in TEXT_SUFFIXES | LINKED_SUFFIXES:
                yield file.data


def _facts(source: Source) -> BundleFacts:
    return BundleFacts(release=source.version, **{key: getattr(source, key) for key in _SAME})


def _source(bundle: Bundle) -> Source:
    facts = bundle.facts
    return Source(version=facts.release, files=bundle.files, **{key: getattr(facts, key) for key in _SAME})


def _check(facts: BundleFacts) -> None:
    """Refuse what reading the archive would refuse."""
    if str(bundle_folder(facts.name).parent) != FOLDER or facts.name.endswith(".json"):
        raise UsageError(f"dependency {quoted(facts.name)}: is no name of a folder; give it one of letters, digits, -")
    unsafe = unsafe_option(facts.compile_options)
    if unsafe is not None:
        raise UsageError(
            f"dependency {facts.name}: compile option {quoted(unsafe)} cannot be taken into an archive, which would "
            "run it on other machines; leave it out, or do not bundle"
        )
