"""Wishes of archives + provisions of the project -> dependencies: who meets whom, and every reason why not.

They meet by short name. What the project provides comes before what an archive has bundled, and is as bound to the
version: a project may have its reasons. Nothing here reads a file or goes out: ``source_of`` does, and is asked only
where no mistake was found, once for each provision and once for each archive's bundle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations, groupby

from mlfbuild.core import InputFileError, ProjectFileError, quoted
from mlfbuild.library import ARCHIVE_FOLDER, Wish
from mlfbuild.project import Provision, short_name
from mlfbuild.requirements.claims import two_upstreams, unsound, without_secret
from mlfbuild.requirements.types import Dependency, Package, Source
from mlfbuild.requirements.union import union
from mlfbuild.requirements.versions import is_commit, is_range, same_version, satisfies
from mlfbuild.requirements.words import lines_to_add, need, origin, unknown_version, wanted

SourceOf = Callable[[Provision | Wish], Source]
"""What has the sources of a provision (never a ``package``), or of a wish that its archive has bundled."""

_ADD = "add to dependencies of the project file"


def resolve(wishes: Iterable[Wish], provisions: Iterable[Provision], source_of: SourceOf) -> tuple[Dependency, ...]:
    """Return what ``wishes`` need, by name, each once; the order of ``wishes`` and ``provisions`` means nothing.

    Raises ``InputFileError`` for wishes that nobody understands, ``ProjectFileError`` with every wish that is not met,
    and what ``source_of`` raises.
    """
    pairs = list(_meeting(wishes, provisions))
    problems = [line for same, provision in pairs for line in _problems(same, provision)]
    if problems:
        raise ProjectFileError(problems)
    return tuple(_dependency(same, provision, source_of) for same, provision in pairs)


def wish_problems(wishes: Iterable[Wish], provisions: Iterable[Provision]) -> list[str]:
    """Return a line for each of ``wishes`` that is not met, without a look at what is provided.

    Raises ``InputFileError`` for wishes that nobody understands.
    """
    return [line for same, provision in _meeting(wishes, provisions) for line in _problems(same, provision)]


def _meeting(
    wishes: Iterable[Wish], provisions: Iterable[Provision]
) -> Iterator[tuple[Sequence[Wish], Provision | None]]:
    """Yield the wishes of each name, sorted, with what the project provides for it."""
    provided = {provision.name: provision for provision in provisions}
    ordered = sorted(set(wishes), key=_key)
    for wish in ordered:
        reason = unsound(wish)
        if reason is not None:
            raise InputFileError(f"{origin(wish)}: dependency {quoted(wish.name)}: {reason}; export it again")
    for name, same in groupby(ordered, key=lambda wish: wish.name):
        yield tuple(same), provided.get(name)


def _key(wish: Wish) -> tuple[str, ...]:
    """Sort by name, and within a name so that messages are the same whatever was found first."""
    return (wish.name, wish.origin, wish.version, wish.url_type, wish.url, wish.exporter, *wish.headers)


# What stands in the way ----------------------------------------------------------------------------------------------


def _problems(wishes: Sequence[Wish], provision: Provision | None) -> Iterator[str]:
    """Yield what keeps ``wishes``, all for one library, from being met, a line each."""
    place = provision.where if provision and provision.where else f"dependency {wishes[0].name}"
    disagreeing = [line for line in (_two_libraries(wishes), _two_versions(wishes)) if line]
    if disagreeing:
        yield from (f"{place}: {line}" for line in disagreeing)
    elif provision is not None:
        yield from (f"{place}: {line}" for line in _unsatisfied(wishes, provision))
    elif unmet := [wish for wish in wishes if wish.url_type != ARCHIVE_FOLDER]:
        yield f"{place}: {_missing(unmet)}"


def _two_libraries(wishes: Sequence[Wish]) -> str | None:
    found = two_upstreams(wishes)
    if found is None:
        return None
    one, other = ((f"{origin(wish)} has it from {without_secret(wish.url)}") for wish in found)
    return f"{one}, and {other}: one name is claimed for two libraries; export one again with another short_name"


def _two_versions(wishes: Sequence[Wish]) -> str | None:
    exact = [wish for wish in wishes if wish.version and not is_range(wish.version)]
    for one, other in combinations(exact, 2):
        if not same_version(one.version, other.version):
            advice = "a project can have one of them: export one again for the other, or give each a project file"
            return f"{wanted(one)}, and {wanted(other)}; {advice}"
    return None


def _unsatisfied(wishes: Sequence[Wish], provision: Provision) -> Iterator[str]:
    stated = provision.version
    for wish in wishes:
        if not wish.version and not stated:
            yield f"{unknown_version(wish)}; find it out, and state it with the key version"
        elif not stated and provision.kind != "package":
            yield f"{wanted(wish)}, and no version is stated; add the key version with the one that this is"
        elif wish.version and stated and not _meets(provision, wish):
            yield f"is {stated}, but {wanted(wish)}; provide a version that satisfies it, or export the model again"


def _meets(provision: Provision, wish: Wish) -> bool:
    """Whether the version is what is wanted, or may turn out to be: a tag names a commit that Git knows."""
    later = provision.kind == "git" and is_commit(wish.version) and not is_commit(provision.version)
    return later or satisfies(provision.version, wish.version)


def _missing(wishes: Sequence[Wish]) -> str:
    reason = f"{need(wishes)}, and the project provides none"
    unknown = next((wish for wish in wishes if not wish.version), None)
    if unknown is not None:
        return f"{reason}; {unknown_version(unknown)}; find it out, and {_ADD} `{lines_to_add(wishes)}`"
    return f"{reason}; {_ADD} `{lines_to_add(wishes)}`"


# What is taken -------------------------------------------------------------------------------------------------------


def _dependency(wishes: Sequence[Wish], provision: Provision | None, source_of: SourceOf) -> Dependency:
    if provision is None:
        parts = {(wish.origin, wish.url): wish for wish in wishes}.values()
        return union([(origin(wish), _checked(source_of(wish), wish.name)) for wish in parts])
    if provision.kind == "package":
        return Package(provision.name, provision.place, provision.target, provision.version, _all_wanted(wishes))
    source = _checked(source_of(provision), provision.name)
    for wish in wishes:
        if (
            wish.version
            and not satisfies(provision.version, wish.version)
            and not satisfies(source.commit, wish.version)
        ):
            reason = f"is {provision.version}, commit {source.commit}, but {wanted(wish)}"
            raise ProjectFileError([f"{provision.where or provision.name}: {reason}; set version to that commit"])
    return source


def _checked(source: Source, name: str) -> Source:
    if short_name(source.name) != name:
        raise InputFileError(
            f"dependency {quoted(name)}: what was found is {quoted(source.name)}, which claims the name of another; "
            "remove one of the two"
        )
    return source


def _all_wanted(wishes: Sequence[Wish]) -> str:
    """Return the one version that is wanted, or the range that all agree on."""
    versions = sorted({wish.version for wish in wishes if wish.version})
    return next((version for version in versions if not is_range(version)), ",".join(versions))
