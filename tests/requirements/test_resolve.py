"""Wishes and provisions that meet, and every reason why they do not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from hypothesis import given, strategies as st

from mlfbuild.core.errors import InputFileError, MlfError, ProjectFileError
from mlfbuild.library.requirement import Wish
from mlfbuild.project import Provision
from mlfbuild.requirements.folder import folder_source
from mlfbuild.requirements.resolution import resolve
from mlfbuild.requirements.types import Package, Source

ARM = "https://github.com/ARM-software/CMSIS-NN"
COMMIT = "22080c68d040c98139e6cb1549473e3149735f4d"
WHERE = "mlfbuild.yml:9:3: dependencies.cmsis-nn"


def recognised(origin: str = "kws", version: str = "v4.1.0", exporter: str = "TVM 0.14.0") -> Wish:
    return Wish("cmsis-nn", version, ARM, "git", origin, ("arm_nnfunctions.h", "arm_nn_types.h"), exporter)


def declared(
    origin: str = "vww", version: str = "v7.0.0", url: str = ARM, url_type: str = "git", name: str = "cmsis-nn"
) -> Wish:
    return Wish(name, version, url, url_type, origin)


def provision(version: str = "v4.1.0", kind: str = "git", name: str = "cmsis-nn", **keys: str) -> Provision:
    return Provision(name, **{kind: {"package": "CMSISNN"}.get(kind, ARM)}, version=version, where=WHERE, **keys)


def source_of(wanted: Provision | Wish) -> Source:
    """Stands for what was fetched, or unpacked, in the version that is asked for."""
    return Source(wanted.name, wanted.version, {"a.c": b""}, ("a.c",), (".",), commit=COMMIT)


def never(wanted: Provision | Wish) -> Source:
    raise AssertionError(f"asked for {wanted}")


def refusal(
    *wishes: Wish,
    provisions: tuple[Provision, ...] = (),
    of: Callable[[Provision | Wish], Source] = never,
    kind: type[MlfError] = ProjectFileError,
) -> str:
    with pytest.raises(kind) as caught:
        resolve(wishes, provisions, of)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# They meet -----------------------------------------------------------------------------------------------------------


def test_a_provision_meets_the_wish_of_its_name() -> None:
    ours = provision(), provision("v1", name="other")
    (found,) = resolve([recognised(), recognised("ad")], ours, source_of)
    assert found == source_of(provision())


def test_nothing_is_needed_where_nobody_wants_it() -> None:
    assert resolve([], [provision()], never) == ()


@pytest.mark.parametrize(
    ("stated", "wanted"),
    [
        ("v4.1.0", "4.1.0"),
        ("4.1.0", "v4.1.0"),
        ("v7.2.0", ">=6,<8"),
        ("main", "main"),
        (COMMIT, COMMIT[:9]),
        ("v4.1.0", ""),
    ],
)
def test_versions_that_satisfy(stated: str, wanted: str) -> None:
    (found,) = resolve([declared(version=wanted)], [provision(stated)], source_of)
    assert found.version == stated


def test_a_tag_is_the_commit_that_git_says() -> None:
    assert resolve([declared(version=COMMIT)], [provision("v7.0.0")], source_of) == (source_of(provision("v7.0.0")),)
    other = COMMIT[::-1]
    assert refusal(declared(version=other), provisions=(provision("v7.0.0"),), of=source_of) == (
        f"{WHERE}: is v7.0.0, commit {COMMIT}, but vww wants {other}; set version to that commit"
    )


def test_a_package_is_not_looked_into() -> None:
    package = provision("v4.1.0", "package", target="CMSISNN::nn")
    assert resolve([recognised()], [package], never) == (
        Package("cmsis-nn", "CMSISNN", "CMSISNN::nn", "v4.1.0", "v4.1.0"),
    )
    unstated = provision("", "package", target="CMSISNN")
    (found,) = resolve([declared(version=">=6"), declared("a", "<8")], [unstated], never)
    assert found == Package("cmsis-nn", "CMSISNN", "CMSISNN", "", "<8,>=6"), "who finds the package compares"
    (found,) = resolve([declared(version=">=6"), declared("a", "7.0.0")], [unstated], never)
    assert found.wanted == "7.0.0"


def test_each_dependency_is_asked_for_once_and_in_order() -> None:
    asked = []

    def remember(wanted: Provision | Wish) -> Source:
        asked.append(wanted.name)
        return source_of(wanted)

    wishes = [declared(name="zlib", version="1"), recognised(), recognised("ad"), declared("x", "1", "", "", "abc")]
    ours = [provision("1", name="zlib"), provision(), provision("1", name="abc")]
    found = resolve(wishes, ours, remember)
    assert asked == [one.name for one in found] == ["abc", "cmsis-nn", "zlib"]


def test_a_bundle_needs_no_provision_and_a_provision_comes_before_it() -> None:
    bundle = declared(url="./dependencies/cmsis-nn", url_type="mlf_path")
    assert resolve([bundle], [], source_of) == (source_of(bundle),)
    assert resolve([bundle], [provision("7.0.0")], source_of) == (source_of(provision("7.0.0")),)
    assert refusal(bundle, provisions=(provision(),)).startswith(f"{WHERE}: is v4.1.0, but vww wants v7.0.0;")


def test_bundles_of_two_archives_are_one_library() -> None:
    def bundles(wish: Provision | Wish) -> Source:
        assert isinstance(wish, Wish)
        own = f"{wish.origin}.c"
        files = {own: b"own", "shared.h": b"both", "LICENSE": b"terms"}
        return Source("cmsis-nn", "v7.0.0", files, (own,), (".",), ("LICENSE",), "Apache-2.0")

    a, b = (declared(name, url="./dependencies/cmsis-nn", url_type="mlf_path") for name in "ab")
    (found,) = resolve([b, a], [], bundles)
    assert list(found.files) == ["LICENSE", "a.c", "b.c", "shared.h"]
    assert (found.sources, found.license_files) == (("a.c", "b.c"), ("LICENSE",))


def test_the_real_library_is_found(stub_cmsis_nn_4: Path) -> None:
    def folders(wanted: Provision | Wish) -> Source:
        assert isinstance(wanted, Provision)
        return folder_source(stub_cmsis_nn_4, wanted)

    (found,) = resolve([recognised()], [provision(kind="path")], folders)
    assert "Include/arm_nnfunctions.h" in found.files


# They do not ---------------------------------------------------------------------------------------------------------


def test_what_nobody_provides_gets_the_line_to_write() -> None:
    message = refusal(recognised("kws (models/kws.tar)"))
    assert message == (
        "dependency cmsis-nn: kws (models/kws.tar) needs CMSIS-NN v4.1.0, what TVM 0.14.0 was tested with (the code "
        "includes arm_nnfunctions.h, arm_nn_types.h), and the project provides none; add to dependencies of the "
        f"project file `cmsis-nn: {{git: {ARM}, version: v4.1.0}}`"
    )
    assert yaml.safe_load(message.split("`")[1]) == {"cmsis-nn": {"git": ARM, "version": "v4.1.0"}}


def test_all_who_miss_it_are_in_one_line() -> None:
    assert refusal(declared("b", ">=7"), declared("a")) == (
        "dependency cmsis-nn: a, b need CMSIS-NN v7.0.0 and >=7 (by what the archive says), and the project provides "
        f"none; add to dependencies of the project file `cmsis-nn: {{git: {ARM}, version: v7.0.0}}`"
    )


def test_a_missing_one_of_unknown_version() -> None:
    assert refusal(recognised(version="", exporter="TVM 0.8.0")) == (
        "dependency cmsis-nn: kws needs CMSIS-NN (the code includes arm_nnfunctions.h, arm_nn_types.h), and the "
        "project provides none; which version the code of kws (TVM 0.8.0) is made for is not known, and with another "
        "one the code links and computes garbage; find it out, and add to dependencies of the project file "
        f"`cmsis-nn: {{git: {ARM}, version: VERSION}}`"
    )


@pytest.mark.parametrize(
    ("wish", "line"),
    [
        (declared(name="x", url="git@example.org:a/x.git"), {"git": "git@example.org:a/x.git", "version": "v7.0.0"}),
        (declared(name="x", url="https://me:s3cret@x.org/a: b"), {"git": "https://x.org/a: b", "version": "v7.0.0"}),
        (
            declared(name="x", version="1.0", url="https://x.org/x-1.0.tar.gz", url_type="url"),
            {"url": "https://x.org/x-1.0.tar.gz", "sha256": "HASH", "version": "1.0"},
        ),
        (declared(name="x", url="/home/me/x", url_type="path"), {"path": "FOLDER", "version": "v7.0.0"}),
        (declared(name="cmsis-nn", url="/home/me/x", url_type="path"), {"git": ARM, "version": "v7.0.0"}),
        (declared(name="x", version=">=7", url="", url_type=""), {"path": "FOLDER", "version": "VERSION"}),
    ],
)
def test_the_line_to_write_is_yaml(wish: Wish, line: dict[str, str]) -> None:
    message = refusal(wish)
    assert yaml.safe_load(message.split("`")[1]) == {wish.name: line}
    assert "s3cret" not in message


def test_versions_that_do_not_satisfy_are_named_both() -> None:
    assert refusal(recognised(), provisions=(provision("v7.0.0"),)) == (
        f"{WHERE}: is v7.0.0, but kws wants v4.1.0, what TVM 0.14.0 was tested with; provide a version that satisfies "
        "it, or export the model again"
    )
    assert "is main, but vww wants >=6,<8; provide" in refusal(
        declared(version=">=6,<8"), provisions=(provision("main"),)
    )


@pytest.mark.parametrize("kind", ["path", "url", "git", "package"])
def test_somebody_has_to_know_the_version(kind: str) -> None:
    wish, ours = recognised(version="", exporter=""), provision("", kind)
    assert refusal(wish, provisions=(ours,)) == (
        f"{WHERE}: which version the code of kws is made for is not known, and with another one the code links and "
        "computes garbage; find it out, and state it with the key version"
    )


@pytest.mark.parametrize("kind", ["path", "url"])
def test_a_version_that_is_wanted_has_to_be_stated(kind: str) -> None:
    assert refusal(declared(), provisions=(provision("", kind),)) == (
        f"{WHERE}: vww wants v7.0.0, and no version is stated; add the key version with the one that this is"
    )


@pytest.mark.parametrize("provided", [(), (provision("v7.0.0"),), (provision("v1"),)])
def test_two_archives_that_want_different_versions_are_named_both(provided: tuple[Provision, ...]) -> None:
    place = WHERE if provided else "dependency cmsis-nn"
    assert refusal(declared("vww (b.tar)"), recognised("kws (a.tar)"), provisions=provided) == (
        f"{place}: kws (a.tar) wants v4.1.0, what TVM 0.14.0 was tested with, and vww (b.tar) wants v7.0.0; a project "
        "can have one of them: export one again for the other, or give each a project file"
    )


def test_a_bundle_does_not_hide_that_archives_disagree() -> None:
    bundle = declared(url="./dependencies/cmsis-nn", url_type="mlf_path")
    assert "kws wants v4.1.0, what TVM 0.14.0 was tested with, and vww wants v7.0.0;" in refusal(recognised(), bundle)
    assert "kws needs CMSIS-NN v7.0.0" in refusal(recognised(version="v7.0.0"), bundle), "its part is for vww alone"


def test_one_name_for_two_libraries_is_refused() -> None:
    other = declared("evil", "v4.1.0", "https://me:s3cret@example.org/cmsis.git")
    for provided in ((), (provision(),)):
        message = refusal(other, recognised(), provisions=provided)
        assert message.endswith(
            f"evil has it from https://example.org/cmsis.git, and kws has it from {ARM}: one name is claimed for two "
            "libraries; export one again with another short_name"
        )


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
    wishes = [recognised(), declared("other", "v4.1.0", url, url_type)]
    assert len(resolve(wishes, [provision()], source_of)) == 1


def test_a_mirror_of_the_project_is_its_own_business() -> None:
    mirror = Provision("cmsis-nn", git="https://mirror.example.org/nn", version="v4.1.0")
    assert resolve([recognised()], [mirror], source_of) == (source_of(mirror),)


@pytest.mark.parametrize(
    ("wish", "reason"),
    [
        (
            declared(url_type="svn"),
            "dependency 'cmsis-nn': url_type 'svn' is unknown (known: path, url, git, mlf_path)",
        ),
        (declared(url_type="\x1b[2J"), r"url_type '\x1b[2J' is unknown"),
        (declared(name="../../etc"), "dependency '../../etc': no name for one (letters"),
        (declared(version="v1\n"), r"version_spec 'v1\n' has control characters, or more than 2000 characters; export"),
        (declared(url="https://x.org/" + "x" * 2000), "xxx'... has control characters, or more than 2000 characters;"),
        (declared(name="a\nb"), r"dependency 'a\nb': no name for one ("),
        (
            declared(version="^7.0"),
            "version_spec '^7.0' is neither a version nor a range as pip writes it (>=6,<8)",
        ),
    ],
)
def test_wishes_that_nobody_understands(wish: Wish, reason: str) -> None:
    message = refusal(wish, provisions=(provision(),), kind=InputFileError)
    assert message.startswith("vww: dependency ") and reason in message and message.isprintable()


def test_a_source_that_claims_the_name_of_another() -> None:
    def other(wanted: Provision | Wish) -> Source:
        return Source("zlib", wanted.version, {}, (), ())

    message = refusal(recognised(), provisions=(provision(),), of=other, kind=InputFileError)
    assert "what was found is 'zlib', which claims the name of another; remove one of the two" in message


def test_bundles_that_contradict_each_other() -> None:
    a, b = (declared(name, url="./dependencies/cmsis-nn", url_type="mlf_path") for name in "ab")

    def files(wish: Provision | Wish) -> Source:
        return Source("cmsis-nn", "v7.0.0", {"x.c": wish.origin.encode()}, ("x.c",), (".",))

    message = refusal(a, b, of=files, kind=InputFileError)
    assert message.startswith("dependency cmsis-nn: a and b have bundled different 'x.c'; let the project provide it")

    def options(wish: Provision | Wish) -> Source:
        return Source("cmsis-nn", "v7.0.0", {}, (), (".",), compile_options=(f"-D{wish.origin}",))

    assert "with different licences or compile options; let" in refusal(a, b, of=options, kind=InputFileError)


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(ProjectFileError) as caught:
        resolve(
            [recognised(), declared(), declared(name="zlib", version="1.3", url=""), declared(name="abc", version="2")],
            [provision(), provision("1", name="abc")],
            never,
        )
    reasons = (
        "is 1, but vww wants 2;",
        "kws wants v4.1.0, what TVM 0.14.0 was tested with, and vww",
        "vww needs zlib 1.3",
    )
    assert len(caught.value.problems) == len(reasons)
    assert all(reason in line for reason, line in zip(reasons, caught.value.problems, strict=True))


WISHES = st.lists(
    st.builds(
        Wish,
        name=st.sampled_from(["cmsis-nn", "x", "y"]),
        version=st.sampled_from(["", "v4.1.0", "4.1.0", ">=4", "v7.0.0", COMMIT, "^1"]),
        url=st.sampled_from(["", ARM, "https://example.org/x"]),
        url_type=st.sampled_from(["", "git", "git", "mlf_path", "svn"]),
        origin=st.sampled_from(["a", "b", "c"]),
        headers=st.sampled_from([(), ("arm_nnfunctions.h",)]),
    ),
    max_size=5,
)
PROVISIONS = st.lists(
    st.builds(
        lambda kind, **keys: Provision(**{kind: ARM}, **keys),
        kind=st.sampled_from(["git", "path", "package"]),
        name=st.sampled_from(["cmsis-nn", "x", "y"]),
        version=st.sampled_from(["", "v4.1.0", "v7.0.0"]),
    ),
    max_size=3,
    unique_by=lambda one: one.name,
)


@given(WISHES, PROVISIONS, st.randoms(use_true_random=False))
def test_order_means_nothing(wishes: list[Wish], provisions: list[Provision], chance) -> None:
    def outcome(wishes: list[Wish], provisions: list[Provision]) -> object:
        try:
            found = resolve(wishes, provisions, source_of)
        except MlfError as error:
            return type(error), str(error)
        wanted = {wish.name for wish in wishes}
        assert [one.name for one in found] == sorted(wanted)
        return found

    once = outcome(wishes, provisions)
    others = wishes * 2, provisions.copy()
    for each in others:
        chance.shuffle(each)
    assert outcome(*others) == once
