"""Matching requirements with providers, and every reason why a requirement is not met."""

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from hypothesis import given, strategies as st

from mlfbuild.core import Diagnostic, InputFileError, MlfError, ProjectFileError
from mlfbuild.library import Requirement, ResolvedLibrary
from mlfbuild.project import Provider
from mlfbuild.requirements.folder import folder_library
from mlfbuild.requirements.resolution import resolve

ARM = "https://github.com/ARM-software/CMSIS-NN"
COMMIT = "22080c68d040c98139e6cb1549473e3149735f4d"
WHERE = "mlfbuild.yml:9:3: dependencies.cmsis-nn"


def recognised(origin: str = "kws", version: str = "v4.1.0", exporter: str = "TVM 0.14.0") -> Requirement:
    return Requirement("cmsis-nn", version, ARM, "git", origin, ("arm_nnfunctions.h", "arm_nn_types.h"), exporter)


def declared(
    origin: str = "vww", version: str = "v7.0.0", url: str = ARM, url_type: str = "git", name: str = "cmsis-nn"
) -> Requirement:
    return Requirement(name, version, url, url_type, origin)


def provider(version: str = "v4.1.0", kind: str = "git", name: str = "cmsis-nn", **keys: str) -> Provider:
    return Provider(name, **{kind: {"package": "CMSISNN"}.get(kind, ARM)}, version=version, where=WHERE, **keys)


def source_of(wanted: Provider | Requirement) -> ResolvedLibrary:
    """Return a stub for a library that was fetched or unpacked, in the stated version."""
    return ResolvedLibrary(wanted.name, wanted.version, {"a.c": b""}, ("a.c",), (".",), commit=COMMIT)


def never(wanted: Provider | Requirement) -> ResolvedLibrary:
    raise AssertionError(f"asked for {wanted}")


def problem(
    *requirements: Requirement,
    providers: tuple[Provider, ...] = (),
    of: Callable[[Provider | Requirement], ResolvedLibrary] = never,
) -> Diagnostic:
    """Return the only problem of the project file."""
    with pytest.raises(ProjectFileError) as caught:
        resolve(requirements, providers, of)
    (found,) = caught.value.problems
    assert isinstance(found, Diagnostic)
    assert "\n" not in str(found)
    return found


def refused(of: Callable[[Provider | Requirement], ResolvedLibrary], *requirements: Requirement) -> tuple[str, str]:
    """Return code and place of the error in input files."""
    with pytest.raises(InputFileError) as caught:
        resolve(requirements, (), of)
    assert str(caught.value).isprintable()
    return caught.value.code, caught.value.place


# Requirements that are met -------------------------------------------------------------------------------------------


def test_a_provider_meets_the_requirement_of_its_name() -> None:
    ours = provider(), provider("v1", name="other")
    (found,) = resolve([recognised(), recognised("ad")], ours, source_of)
    assert found == source_of(provider())


def test_no_requirements() -> None:
    assert resolve([], [provider()], never) == ()


@pytest.mark.parametrize(
    ("stated", "wanted"),
    [
        ("v4.1.0", "4.1.0"), ("4.1.0", "v4.1.0"), ("v7.2.0", ">=6,<8"), ("main", "main"), (COMMIT, COMMIT[:9]),
        ("v4.1.0", ""),
    ],
)  # fmt: skip
def test_satisfying_versions(stated: str, wanted: str) -> None:
    (found,) = resolve([declared(version=wanted)], [provider(stated)], source_of)
    assert found.version == stated


def test_tag_satisfies_its_commit() -> None:
    assert resolve([declared(version=COMMIT)], [provider("v7.0.0")], source_of) == (source_of(provider("v7.0.0")),)
    found = problem(declared(version=COMMIT[::-1]), providers=(provider("v7.0.0"),), of=source_of)
    assert (found.code, found.place) == ("provider-other-commit", WHERE)


def test_package_meets_a_requirement() -> None:
    package = provider("v4.1.0", "package", target="CMSISNN::nn")
    nn = ResolvedLibrary("cmsis-nn", "v4.1.0", package="CMSISNN", target="CMSISNN::nn", wanted="v4.1.0")
    assert resolve([recognised()], [package], never) == (nn,)
    unstated = provider("", "package", target="CMSISNN")
    (found,) = resolve([declared(version=">=6"), declared("a", "<8")], [unstated], never)
    assert (found.version, found.wanted) == ("", "<8,>=6"), "CMake compares the versions"
    (found,) = resolve([declared(version=">=6"), declared("a", "7.0.0")], [unstated], never)
    assert found.wanted == "7.0.0"


def test_each_library_is_read_once_and_in_order() -> None:
    asked = []

    def remember(wanted: Provider | Requirement) -> ResolvedLibrary:
        asked.append(wanted.name)
        return source_of(wanted)

    wanted = [declared(name="zlib", version="1"), recognised(), recognised("ad"), declared("x", "1", "", "", "abc")]
    ours = [provider("1", name="zlib"), provider(), provider("1", name="abc")]
    found = resolve(wanted, ours, remember)
    assert asked == [one.name for one in found] == ["abc", "cmsis-nn", "zlib"]


def test_a_provider_precedes_a_bundle() -> None:
    bundle = declared(url="./dependencies/cmsis-nn", url_type="mlf_path")
    assert resolve([bundle], [], source_of) == (source_of(bundle),)
    assert resolve([bundle], [provider("7.0.0")], source_of) == (source_of(provider("7.0.0")),)
    assert problem(bundle, providers=(provider(),)).code == "provider-other-version"


def test_bundles_of_two_archives_are_one_library() -> None:
    def bundles(requirement: Provider | Requirement) -> ResolvedLibrary:
        assert isinstance(requirement, Requirement)
        own = f"{requirement.origin}.c"
        files = {own: b"own", "shared.h": b"both", "LICENSE": b"terms"}
        return ResolvedLibrary("cmsis-nn", "v7.0.0", files, (own,), (".",), ("LICENSE",), "Apache-2.0")

    a, b = (declared(name, url="./dependencies/cmsis-nn", url_type="mlf_path") for name in "ab")
    (found,) = resolve([b, a], [], bundles)
    assert list(found.files) == ["LICENSE", "a.c", "b.c", "shared.h"]
    assert (found.sources, found.license_files) == (("a.c", "b.c"), ("LICENSE",))


def test_library_of_a_folder_is_resolved(stub_cmsis_nn_4: Path) -> None:
    def folders(wanted: Provider | Requirement) -> ResolvedLibrary:
        assert isinstance(wanted, Provider)
        return folder_library(stub_cmsis_nn_4, wanted)

    (found,) = resolve([recognised()], [provider(kind="path")], folders)
    assert "Include/arm_nnfunctions.h" in found.files


# Requirements that are not met ---------------------------------------------------------------------------------------


def test_a_requirement_without_a_provider_gets_the_line_to_add() -> None:
    found = problem(recognised("kws (models/kws.tar)"))
    assert (found.code, found.place) == ("requirement-without-provider", "dependency cmsis-nn")
    assert all(word in found.reason for word in ("kws (models/kws.tar)", "v4.1.0", "TVM 0.14.0", "arm_nn_types.h"))
    assert yaml.safe_load(found.hint.split("`")[1]) == {"cmsis-nn": {"git": ARM, "version": "v4.1.0"}}
    found = problem(declared("b", ">=7"), declared("a"))
    assert all(word in found.reason for word in ("a, b", "v7.0.0", ">=7"))
    found = problem(recognised(version="", exporter="TVM 0.8.0"))
    assert "TVM 0.8.0" in found.reason and "version: VERSION" in found.hint


LISTS = {"sources": ["src/*.c"], "include-dirs": ["include"]}


@pytest.mark.parametrize(
    ("requirement", "line"),
    [
        (declared(name="x", url="git@example.org:a/x.git"),
         {"git": "git@example.org:a/x.git", "version": "v7.0.0", **LISTS}),
        (declared(name="x", url="https://me:s3cret@x.org/a: b"),
         {"git": "https://x.org/a: b", "version": "v7.0.0", **LISTS}),
        (declared(name="x", version="1.0", url="https://x.org/x-1.0.tar.gz", url_type="url"),
         {"url": "https://x.org/x-1.0.tar.gz", "sha256": "HASH", "version": "1.0", **LISTS}),
        (declared(name="x", url="/home/me/x", url_type="path"), {"path": "FOLDER", "version": "v7.0.0", **LISTS}),
        (declared(name="cmsis-nn", url="/home/me/x", url_type="path"), {"git": ARM, "version": "v7.0.0"}),
        (declared(name="x", version=">=7", url="", url_type=""), {"path": "FOLDER", "version": "VERSION", **LISTS}),
    ],
)  # fmt: skip
def test_the_line_to_add_is_yaml(requirement: Requirement, line: dict[str, object]) -> None:
    found = problem(requirement)
    assert yaml.safe_load(found.hint.split("`")[1]) == {requirement.name: line}
    assert "s3cret" not in str(found)


@pytest.mark.parametrize(
    ("requirement", "provider", "code"),
    [
        (recognised(), provider("v7.0.0"), "provider-other-version"),
        (declared(version=">=6,<8"), provider("main"), "provider-other-version"),
        *((recognised(version="", exporter=""), provider("", kind), "requirement-version-unknown")
          for kind in ("path", "url", "git", "package")),
        *((declared(), provider("", kind), "provider-without-version") for kind in ("path", "url")),
    ],
)  # fmt: skip
def test_unsatisfying_versions_are_refused(requirement: Requirement, provider: Provider, code: str) -> None:
    found = problem(requirement, providers=(provider,))
    assert (found.code, found.place) == (code, WHERE)


@pytest.mark.parametrize("provided", [(), (provider("v7.0.0"),), (provider("v1"),)])
def test_archives_that_require_different_versions_are_refused(provided: tuple[Provider, ...]) -> None:
    found = problem(declared("vww (b.tar)"), recognised("kws (a.tar)"), providers=provided)
    assert (found.code, found.place) == ("requirement-two-versions", WHERE if provided else "dependency cmsis-nn")
    assert all(word in found.reason for word in ("vww (b.tar)", "v7.0.0", "kws (a.tar)", "v4.1.0"))


def test_a_bundle_does_not_hide_the_requirements_of_others() -> None:
    bundle = declared(url="./dependencies/cmsis-nn", url_type="mlf_path")
    assert problem(recognised(), bundle).code == "requirement-two-versions"
    assert problem(recognised(version="v7.0.0"), bundle).code == "requirement-without-provider"


def test_one_name_for_two_libraries_is_refused() -> None:
    other = declared("evil", "v4.1.0", "https://me:s3cret@example.org/cmsis.git")
    for provided in ((), (provider(),)):
        found = problem(other, recognised(), providers=provided)
        assert found.code == "requirement-two-libraries"
        assert "https://example.org/cmsis.git" in found.reason and ARM in found.reason


@pytest.mark.parametrize(
    ("url", "url_type"),
    [
        ("https://github.com/arm-software/cmsis-nn.git/", "git"),
        ("git@github.com:ARM-software/CMSIS-NN.git", "git"),
        ("ssh://git@github.com:22/ARM-software/CMSIS-NN", "git"),
        ("https://github.com/ARM-software/CMSIS-NN/archive/refs/tags/v4.1.0.tar.gz", "url"),
        ("/home/somebody/CMSIS-NN", "path"),
        ("", ""),
    ],
)
def test_one_library_has_many_addresses(url: str, url_type: str) -> None:
    wanted = [recognised(), declared("other", "v4.1.0", url, url_type)]
    assert len(resolve(wanted, [provider()], source_of)) == 1


def test_a_provider_may_be_a_mirror() -> None:
    mirror = Provider("cmsis-nn", git="https://mirror.example.org/nn", version="v4.1.0")
    assert resolve([recognised()], [mirror], source_of) == (source_of(mirror),)


@pytest.mark.parametrize(
    "requirement",
    [
        declared(url_type="svn"), declared(url_type="\x1b[2J"), declared(name="../../etc"), declared(version="v1\n"),
        declared(url="https://x.org/" + "x" * 2000), declared(name="a\nb"), declared(version="^7.0"),
    ],
)  # fmt: skip
def test_invalid_requirements_are_refused(requirement: Requirement) -> None:
    code, place = refused(never, requirement)
    assert code == "requirement-invalid" and place.startswith("vww: dependency ")


def test_library_of_another_name_is_refused() -> None:
    bundle = declared(url="./dependencies/cmsis-nn", url_type="mlf_path")
    assert refused(lambda wanted: ResolvedLibrary("zlib", wanted.version), bundle) == (
        "library-other-name",
        "dependency 'cmsis-nn'",
    )


@pytest.mark.parametrize("differ", ["files", "options"])
def test_different_bundles_are_refused(differ: str) -> None:
    a, b = (declared(name, url="./dependencies/cmsis-nn", url_type="mlf_path") for name in "ab")

    def bundle(wanted: Provider | Requirement) -> ResolvedLibrary:
        assert isinstance(wanted, Requirement)
        if differ == "files":
            return ResolvedLibrary("cmsis-nn", "v7.0.0", {"x.c": wanted.origin.encode()}, ("x.c",), (".",))
        return ResolvedLibrary("cmsis-nn", "v7.0.0", compile_options=(f"-D{wanted.origin}",))

    assert refused(bundle, a, b) == ("bundles-differ", "dependency cmsis-nn")


def test_all_problems_are_reported_at_once() -> None:
    with pytest.raises(ProjectFileError) as caught:
        resolve(
            [recognised(), declared(), declared(name="zlib", version="1.3", url=""), declared(name="abc", version="2")],
            [provider(), provider("1", name="abc")],
            never,
        )
    assert [found.code for found in caught.value.problems if isinstance(found, Diagnostic)] == [
        "provider-other-version", "requirement-two-versions", "requirement-without-provider",
    ]  # fmt: skip


REQUIREMENTS = st.lists(
    st.builds(
        Requirement,
        name=st.sampled_from(["cmsis-nn", "x", "y"]),
        version=st.sampled_from(["", "v4.1.0", "4.1.0", ">=4", "v7.0.0", COMMIT, "^1"]),
        url=st.sampled_from(["", ARM, "https://example.org/x"]),
        url_type=st.sampled_from(["", "git", "git", "mlf_path", "svn"]),
        origin=st.sampled_from(["a", "b", "c"]),
        headers=st.sampled_from([(), ("arm_nnfunctions.h",)]),
    ),
    max_size=5,
)
PROVIDERS = st.lists(
    st.builds(
        lambda kind, **keys: Provider(**{kind: ARM}, **keys),
        kind=st.sampled_from(["git", "path", "package"]),
        name=st.sampled_from(["cmsis-nn", "x", "y"]),
        version=st.sampled_from(["", "v4.1.0", "v7.0.0"]),
    ),
    max_size=3,
    unique_by=lambda one: one.name,
)


@given(REQUIREMENTS, PROVIDERS, st.randoms(use_true_random=False))
def test_order_does_not_matter(requirements: list[Requirement], providers: list[Provider], chance) -> None:
    def outcome(requirements: list[Requirement], providers: list[Provider]) -> object:
        try:
            found = resolve(requirements, providers, source_of)
        except MlfError as error:
            return type(error), str(error)
        wanted = {requirement.name for requirement in requirements}
        assert [one.name for one in found] == sorted(wanted)
        return found

    once = outcome(requirements, providers)
    others = requirements * 2, providers.copy()
    for each in others:
        chance.shuffle(each)
    assert outcome(*others) == once
