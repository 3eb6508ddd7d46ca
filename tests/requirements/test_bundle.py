"""Libraries inside archives: writing, reading, and every verb that reads or writes archives."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path, PurePosixPath

import pytest

from mlfbuild.archive import open_archive, pack_archive, read_archive
from mlfbuild.archive.describe import describe
from mlfbuild.archive.layout import archive_files
from mlfbuild.archive.merge import merge
from mlfbuild.archive.validate import validate
from mlfbuild.cli.output.invocation import run
from mlfbuild.core import CheckFailedError, InputFileError, UsageError
from mlfbuild.library import (
    ArchiveFile,
    CodegenFile,
    ExternalDependency,
    Library,
    Module,
    ResolvedLibrary,
    UnknownField,
    bundles,
    requirements_of,
)
from mlfbuild.requirements.bundle import bundled, bundled_library
from support.cmsis_nn_source import cmsis_nn_source
from support.errors import raises
from support.libraries import native_module

WHERE = "kws.tar"
NOW = datetime(2024, 1, 1, tzinfo=timezone.utc)
LIB = ResolvedLibrary(
    name="lib",
    version="v1.2.0",
    files={
        "LICENSE": b"MIT\n",
        "a.c": b'#include "lib.h"\nint lib_a(void) { return 1; }\n',
        "b.c": b'#include "lib.h"\nint lib_b(void) { return 2; }\n',
        "include/lib.h": b"int lib_a(void);\nint lib_b(void);\n",
    },
    sources=("a.c", "b.c"),
    include_dirs=("include",),
    license_files=("LICENSE",),
    license="MIT",
    url="https://example.org/lib.git",
    commit="0123456789abcdef0123456789abcdef01234567",
    compile_options=("-O3", "-DFAST=1", "-Wno-unused-function"),
    public_headers=True,
)
DESCRIPTION = "dependencies/lib.json"


def calling(function: str, name: str = "tiny", wants: str = "LIB") -> Module:
    """Return a module whose code calls ``function`` of a library, which its metadata names ``wants``."""
    module = native_module(name)
    code = f'#include "lib.h"\nint {name}_more(void) {{ return {function}(); }}\n'.encode()
    files = (*module.codegen, CodegenFile(PurePosixPath(f"host/src/{name}_lib1.c"), code))
    requirement = ExternalDependency(wants, "https://example.org/lib.git", "git", "v1.2.0")
    return replace(module, codegen=files, external_dependencies=(requirement,))


def with_lib(function: str = "lib_a", name: str = "tiny", source: ResolvedLibrary = LIB) -> Library:
    return bundled(Library((calling(function, name),)), {"lib": source})


def bundles_of(library: Library) -> dict[str, ResolvedLibrary]:
    return bundles(library, WHERE)


def edited(change: Callable[[dict[str, object]], object]) -> Library:
    """Return a library with a bundle whose description was changed."""
    library = with_lib()
    (description,) = (file for file in library.other_files if str(file.path) == DESCRIPTION)
    facts = json.loads(description.data)
    change(facts)
    kept = (file for file in library.other_files if file is not description)
    return replace(library, other_files=(*kept, ArchiveFile(description.path, json.dumps(facts).encode())))


def test_archive_contains_the_library_and_its_description() -> None:
    files = archive_files(with_lib())
    assert [path for path in files if path.startswith("dependencies")] == [
        "dependencies/lib.json", "dependencies/lib/LICENSE", "dependencies/lib/a.c", "dependencies/lib/b.c",
        "dependencies/lib/include/lib.h",
    ]  # fmt: skip
    assert json.loads(bytes(files["metadata.json"]))["modules"]["tiny"]["external_dependencies"] == [
        {"short_name": "lib", "url": "./dependencies/lib", "url_type": "mlf_path", "version_spec": "v1.2.0"}
    ]


def test_unknown_fields_of_the_entry_are_kept() -> None:
    licence = UnknownField("/licence", '"MIT"')
    module = calling("lib_a", "tiny")
    entry = ExternalDependency("lib", "https://example.org/lib", "git", "v1.2.0", (licence,))
    library = bundled(Library((replace(module, external_dependencies=(entry,)),)), {"lib": LIB})
    assert [(item.url_type, item.unknown) for item in library.modules[0].external_dependencies] == [
        ("mlf_path", (licence,))
    ]


def test_bundle_reads_back_unchanged() -> None:
    library = read_archive(pack_archive(with_lib()), WHERE)
    (source,) = bundles(library, WHERE).values()
    assert {path: bytes(content) for path, content in source.files.items()} == LIB.files
    assert replace(source, files={}) == replace(LIB, files={})


def test_bundling_is_reproducible() -> None:
    library = with_lib()
    assert pack_archive(library) == pack_archive(with_lib())
    read = read_archive(pack_archive(library), WHERE)
    assert pack_archive(read) == pack_archive(library)
    assert pack_archive(bundled(read, {"lib": LIB})) == pack_archive(library)


def test_libraries_that_are_not_required_are_left_out() -> None:
    library = Library((native_module(),))
    assert bundled(library, {"lib": LIB}) == library
    assert bundles_of(library) == {}
    assert bundles_of(Library((calling("lib_a"),))) == {}


def test_a_library_recognised_by_its_headers_is_named(shared: Path, stub_cmsis_nn_4: Path) -> None:
    library = open_archive(shared / "archives" / "kws_int8-cmsisnn_m4.tar")
    whole = cmsis_nn_source(stub_cmsis_nn_4)
    with_it = bundled(library, {"cmsis-nn": whole})
    assert ExternalDependency("cmsis-nn", "./dependencies/cmsis-nn", "mlf_path", "v4.1.0") in (
        with_it.modules[0].external_dependencies
    )
    (source,) = bundles_of(with_it).values()
    assert source.sources == whole.sources
    assert source.license_files == ("LICENSE.txt",)


def test_other_files_in_its_folder_are_not_overwritten() -> None:
    theirs = ArchiveFile(PurePosixPath("dependencies/lib/x.c"), b"")
    library = Library((calling("lib_a"),), other_files=(theirs,))
    with raises(UsageError, "bundle-folder-taken", at="dependency lib"):
        bundled(library, {"lib": LIB})


def test_requirement_is_matched_with_its_folder() -> None:
    library = with_lib()
    (requirement,) = requirements_of(library.modules[0])
    assert bundled_library(library, requirement, WHERE) == bundles_of(library)["lib"]


def test_folder_without_a_description_is_not_a_bundle() -> None:
    library = with_lib()
    kept = tuple(file for file in library.other_files if str(file.path) != DESCRIPTION)
    bare = replace(library, other_files=kept)
    assert bundles_of(bare) == {}
    (requirement,) = requirements_of(bare.modules[0])
    with raises(InputFileError, "bundle-not-described", at=f"{WHERE}: dependency 'lib'"):
        bundled_library(bare, requirement, WHERE)


def test_folder_of_another_library_is_refused() -> None:
    (module,) = with_lib().modules
    named = replace(module.external_dependencies[0], short_name="cmsis-nn")
    library = replace(with_lib(), modules=(replace(module, external_dependencies=(named,)),))
    (requirement,) = requirements_of(library.modules[0])
    with raises(InputFileError, "bundle-other-name", at=f"{WHERE}: dependency 'cmsis-nn'"):
        bundled_library(library, requirement, WHERE)


@pytest.mark.parametrize(
    "option",
    [
        "-fplugin=x.so", "-fpass-plugin=x.so", "-mllvm", "-fprofile-dir=..", "-Wl,-T,x.ld", "-wrapper", "@file",
        "-I/etc", "-O3 -x", "-include",
    ],
)  # fmt: skip
def test_unsafe_options_are_refused(option: str) -> None:
    with raises(UsageError, "bundle-option-refused", at="dependency lib"):
        with_lib(source=replace(LIB, compile_options=(option,)))
    with pytest.raises(InputFileError, match="compile_options"):
        bundles(edited(lambda facts: facts.update(compile_options=[option])), WHERE)


@pytest.mark.parametrize(
    ("change", "key"),
    [
        (lambda facts: facts.update(version=2), "version"),
        (lambda facts: facts.update(name="other"), "name"),
        (lambda facts: facts.pop("name"), "name"),
        (lambda facts: facts.update(sources=["c.c"]), "sources"),
        (lambda facts: facts.update(sources=["../../codegen/host/src/x.c"]), "sources"),
        (lambda facts: facts.update(sources="a.c"), "sources"),
        (lambda facts: facts.update(license_files=["/etc/passwd"]), "license_files"),
        (lambda facts: facts.update(include_dirs=[".."]), "include_dirs"),
        (lambda facts: facts.update(include_dirs=["include/../.."]), "include_dirs"),
        (lambda facts: facts.update(license="a\nb"), "license"),
        (lambda facts: facts.update(commit="HEAD; rm"), "commit"),
        (lambda facts: facts.update(public_headers=1), "public_headers"),
    ],
)
def test_invalid_descriptions_are_refused(change: Callable[[dict[str, object]], object], key: str) -> None:
    library = edited(change)
    with pytest.raises(InputFileError) as caught:
        bundles(library, WHERE)
    text = str(caught.value)
    assert text.startswith(f"{WHERE}: {DESCRIPTION}: {key}: ") and "\n" not in text
    report = validate(archive_files(library), WHERE, NOW)
    assert [(found.code, found.place) for found in report.findings if found.code[3] == "8"] == [("MLF805", DESCRIPTION)]


def test_description_that_is_not_json_or_too_long() -> None:
    for content in (b"{", b"[]", b" " * (1 << 20) + b"{}"):
        library = with_lib()
        kept = [file for file in library.other_files if str(file.path) != DESCRIPTION]
        broken = replace(library, other_files=(*kept, ArchiveFile(PurePosixPath(DESCRIPTION), content)))
        with pytest.raises(InputFileError, match=f"{WHERE}: {DESCRIPTION}: "):
            bundles(broken, WHERE)


# Verbs ---------------------------------------------------------------------------------------------------------------


def test_verbs_accept_bundles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive = tmp_path / "tiny.tar"
    archive.write_bytes(pack_archive(with_lib()))
    assert run(["validate", str(archive)]) == 0
    assert not {"MLF108", "MLF802", "MLF805"} & set(capsys.readouterr().out.replace(":", " ").split())
    assert run(["inspect", str(archive)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert (
        "lib v1.2.0: folder ./dependencies/lib of the archive, 2 sources, licence MIT" in shown
        and "dependencies/, 5 files" in shown
    )
    for version in ("5", "6", "7"):
        assert run(["convert", str(archive), "--to", version, "-o", str(tmp_path / f"{version}.tar")]) == 0
        archive = tmp_path / f"{version}.tar"
        assert bundles_of(open_archive(archive)).keys() == {"lib"}
    assert archive.read_bytes() == (tmp_path / "tiny.tar").read_bytes()
    assert (
        "`dependencies/` | libraries that the code requires" in bytes(archive_files(with_lib())["README.md"]).decode()
    )


def test_inspect_has_the_facts() -> None:
    (facts,) = describe(with_lib())["modules"][0]["external_dependencies"]
    size = sum(map(len, LIB.files.values()))
    assert facts["bundle"] == {"files": 4, "sources": 2, "size": size, "license": "MIT", "commit": LIB.commit}
    (unsound,) = describe(edited(lambda facts: facts.update(sources=["x.c"])))["modules"][0]["external_dependencies"]
    assert unsound["in_archive"] and unsound["bundle"] is None


def test_compare_reports_differences(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, library in (("a", with_lib()), ("b", with_lib(source=replace(LIB, version="v1.3.0")))):
        (tmp_path / f"{name}.tar").write_bytes(pack_archive(library))
    assert run(["compare", str(tmp_path / "a.tar"), str(tmp_path / "a.tar")]) == 0
    capsys.readouterr()
    assert run(["compare", str(tmp_path / "a.tar"), str(tmp_path / "b.tar")]) == 1
    shown = capsys.readouterr().out
    assert "v1.3.0" in shown and DESCRIPTION in shown


def test_merging_joins_partial_bundles() -> None:
    """Archives of older versions contain only the files that their code needs."""
    parts = [
        replace(LIB, sources=(own,), files={path: LIB.files[path] for path in ("LICENSE", own, "include/lib.h")})
        for own in ("a.c", "b.c")
    ]
    one, two = with_lib("lib_a", "one", parts[0]), with_lib("lib_b", "two", parts[1])
    merged = read_archive(pack_archive(merge([("one.tar", one), ("two.tar", two)])), "merged.tar")
    (source,) = bundles_of(merged).values()
    assert source.sources == ("a.c", "b.c") and set(source.files) == set(LIB.files)
    assert validate(archive_files(merged), "merged.tar", NOW).failed is False
    both = bundled(Library((calling("lib_a", "one"), calling("lib_b", "two"))), {"lib": LIB})
    assert archive_files(merged) == archive_files(both)


@pytest.mark.parametrize(
    "other",
    [
        replace(LIB, files={**LIB.files, "include/lib.h": b"int lib_b(void);\n"}),
        replace(LIB, license="Apache-2.0"),
        replace(LIB, compile_options=()),
    ],
)
def test_different_libraries_of_one_name_are_not_merged(other: ResolvedLibrary) -> None:
    with raises(CheckFailedError, "merged-bundles-differ", at="one.tar and two.tar"):
        merge([("one.tar", with_lib("lib_a", "one")), ("two.tar", with_lib("lib_b", "two", other))])


def test_a_bundle_and_a_requirement_are_not_merged() -> None:
    requiring = Library((calling("lib_b", "two", wants="lib"),))
    with pytest.raises(CheckFailedError):
        merge([("one.tar", with_lib("lib_a", "one")), ("two.tar", requiring)])
