"""Folders with sources: the files of the library, compiled files, and errors."""

import hashlib
import os
import pickle
from pathlib import Path

import pytest

from mlfbuild.core import Diagnostic, InputFileError, MlfError, ProjectFileError
from mlfbuild.library import ResolvedLibrary
from mlfbuild.project import Provider
from mlfbuild.requirements import folder as folder_module
from mlfbuild.requirements.folder import content_sha256, folder_library
from support.errors import raises

WHERE = "mlfbuild.yml:9:3: dependencies.lib"


def provider(**keys) -> Provider:
    lists = {"sources": ("src/*.c",), "include_dirs": (".",)}
    return Provider("lib", path="../lib", **{"where": WHERE, **lists, **keys})


def write(root: Path, *names: str) -> Path:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"// {name}\n")
    return root


def refusal(root: Path, kind: type[MlfError], **keys) -> tuple[str, str]:
    """Return code and place of the error."""
    with pytest.raises(kind) as caught:
        folder_library(root, provider(**keys))
    assert "\n" not in str(caught.value)
    error = caught.value.problems[0] if isinstance(caught.value, ProjectFileError) else caught.value
    assert isinstance(error, (Diagnostic, InputFileError))
    return error.code, error.place


def test_the_files_of_a_known_library(stub_cmsis_nn_7: Path) -> None:
    source = folder_library(stub_cmsis_nn_7, Provider("cmsis-nn", path="../CMSIS-NN", version="v7.0.0"))
    assert (source.name, source.version, source.license) == ("cmsis-nn", "v7.0.0", "Apache-2.0")
    assert source.include_dirs == ("Include",)
    assert source.license_files == ("LICENSE",)
    assert "Source/ConvolutionFunctions/arm_convolve_wrapper_s8.c" in source.sources
    assert "Include/Internal/arm_nn_compiler.h" in source.files
    assert {path.partition("/")[0] for path in source.files} == {"Include", "Source", "LICENSE"}, "no tests, no pages"
    assert list(source.files) == sorted(source.files)
    assert set(source.sources) <= set(source.files)
    for path in source.files:
        assert bytes(source.files[path]) == (stub_cmsis_nn_7 / path).read_bytes()


def test_every_release_has_the_same_layout(cmsis_nn_4: Path, cmsis_nn_7: Path) -> None:
    for folder, version, count in ((cmsis_nn_4, "v4.1.0", 72), (cmsis_nn_7, "v7.0.0", 113)):
        source = folder_library(folder, Provider("cmsis-nn", path=str(folder), version=version))
        assert len(source.sources) == count
        assert "Include/arm_nnfunctions.h" in source.files
        assert source.license_files != ()


@pytest.mark.parametrize(
    ("keys", "missing"),
    [
        ({"sources": (), "include_dirs": ()}, "sources and include-dirs"),
        ({"sources": ()}, "sources"),
        ({"include_dirs": ()}, "include-dirs"),
        ({"name": "cmsis-nn", "version": "main", "sources": (), "include_dirs": ()}, "sources and include-dirs"),
        ({"name": "ethos-u-core-driver", "version": "24.11", "sources": ()}, "sources"),
    ],
)
def test_missing_list_is_a_project_file_error(tmp_path: Path, keys: dict, missing: str) -> None:
    write(tmp_path, "src/a.c", "include/a.h", "Source/a.c", "Include/a.h")
    with pytest.raises(ProjectFileError) as caught:
        folder_library(tmp_path, Provider(**{**vars(provider()), **keys}))
    (problem,) = caught.value.problems
    assert isinstance(problem, Diagnostic)
    assert (problem.code, problem.place) == ("provider-without-files", WHERE)
    assert problem.reason.startswith(f"{missing} of ")
    assert all(key in problem.hint for key in missing.split(" and "))


def test_the_lists_of_a_known_library_can_be_stated(tmp_path: Path) -> None:
    write(tmp_path, "lib/nn.c", "api/nn.h")
    nn = Provider("cmsis-nn", path="nn", version="main", sources=("lib/*.c",), include_dirs=("api",))
    assert folder_library(tmp_path, nn).sources == ("lib/nn.c",)


def test_a_library_of_headers(tmp_path: Path) -> None:
    library = folder_library(
        write(tmp_path, "include/a.h"), provider(sources=("include/*.h",), include_dirs=("include",))
    )
    assert (library.sources, list(library.files)) == ((), ["include/a.h"])


def test_the_lists_of_the_project_file(tmp_path: Path) -> None:
    write(tmp_path, "src/a.c", "src/b.c", "src/b_test.c", "port/m4.S", "api/a.h", "api2/b.h", "LICENSE")
    source = folder_library(
        tmp_path,
        provider(
            sources=("src/[ab].c", "./port//*.S"),
            include_dirs=("api/", "./api2", "api"),
            license="MIT",
            compile_options=("-O3",),
            public_headers=True,
            version="v2",
        ),
        "c0ffee",
    )
    assert source.sources == ("port/m4.S", "src/a.c", "src/b.c")
    assert source.include_dirs == ("api", "api2")
    assert source.license == "MIT"
    assert (source.compile_options, source.public_headers, source.version) == (("-O3",), True, "v2")
    assert source.commit == "c0ffee"


def test_names_that_begin_with_a_dot_are_left_out(tmp_path: Path) -> None:
    write(tmp_path, "src/a.c", "src/.a.c", "src/.cache/b.c", ".git/config", "a.h", ".venv/c.h")
    (tmp_path / ".pipe").mkdir()
    os.mkfifo(tmp_path / ".pipe/fifo")
    assert set(folder_library(tmp_path, provider()).files) == {"src/a.c", "a.h"}


@pytest.mark.parametrize(
    ("keys", "code", "key"),
    [
        ({"sources": ("src/*.c", "scr/*.c")}, "pattern-matches-nothing", "sources"),
        ({"sources": ("src/*.C",)}, "pattern-matches-nothing", "sources"),
        ({"sources": ("src",)}, "pattern-matches-nothing", "sources"),
        ({"sources": ("**",)}, "source-not-compiled", "sources"),
        ({"include_dirs": ("includes",)}, "include-dir-missing", "include-dirs"),
        ({"include_dirs": ("include/a.h",)}, "include-dir-missing", "include-dirs"),
        ({"name": "cmsis-nn", "version": "v7.0.0", "sources": ()}, "pattern-matches-nothing", "sources"),
        ({"name": "cmsis-nn", "version": "v7.0.0", "include_dirs": ()}, "include-dir-missing", "include-dirs"),
    ],
)
def test_missing_files_are_project_file_errors(tmp_path: Path, keys: dict, code: str, key: str) -> None:
    write(tmp_path, "src/a.c", "src/notes.txt", "include/a.h")
    with pytest.raises(ProjectFileError) as caught:
        folder_library(tmp_path, Provider(**{**vars(provider()), **keys}))
    (problem,) = caught.value.problems
    assert isinstance(problem, Diagnostic)
    assert (problem.code, problem.place) == (code, f"{WHERE}.{key}")


# Untrusted files --------------------------------------------------------------------------------------------


def test_links_that_stay_inside_are_followed(tmp_path: Path) -> None:
    root = write(tmp_path / "lib", "src/a.c", "shared/b.c", "shared/deep/c.h")
    (root / "src/b.c").symlink_to("../shared/b.c")
    (root / "src/deep").symlink_to(root / "shared/deep")
    source = folder_library(root, provider(sources=("src/*.c",)))
    assert source.sources == ("src/a.c", "src/b.c")
    assert bytes(source.files["src/b.c"]) == b"// shared/b.c\n"
    assert "src/deep/c.h" in source.files


def test_a_library_may_be_behind_a_link(tmp_path: Path) -> None:
    write(tmp_path / "lib", "src/a.c")
    (tmp_path / "link").symlink_to("lib")
    assert folder_library(tmp_path / "link", provider()).sources == ("src/a.c",)


@pytest.mark.parametrize("target", ["/etc/passwd", "../../secret.h", "../../lib2"])
def test_links_that_lead_out_are_refused(tmp_path: Path, target: str) -> None:
    write(tmp_path, "secret.h", "lib2/x.h")
    root = write(tmp_path / "lib", "src/a.c")
    (root / "src/x.h").symlink_to(target)
    assert refusal(root, InputFileError) == ("library-file-refused", WHERE)


@pytest.mark.parametrize("key", ["sources", "include_dirs"])
def test_folder_behind_a_link_that_leads_out_is_refused(tmp_path: Path, key: str) -> None:
    write(tmp_path, "secret/x.h", "secret/x.c")
    root = write(tmp_path / "lib", "src/a.c")
    (root / "api").symlink_to("../secret")
    pattern = {"sources": "api/*.c", "include_dirs": "api"}[key]
    code = {"sources": "pattern-matches-nothing", "include_dirs": "include-dir-missing"}[key]
    assert refusal(root, ProjectFileError, **{key: (pattern,)}) == (code, f"{WHERE}.{key.replace('_', '-')}")


def test_links_outside_of_library_folders_are_ignored(tmp_path: Path) -> None:
    root = write(tmp_path / "lib", "src/a.c", "include/a.h")
    (root / "venv").mkdir()
    (root / "venv/python").symlink_to("/usr/bin/env")
    assert set(folder_library(root, provider(include_dirs=("include",))).files) == {"src/a.c", "include/a.h"}


def test_a_loop_of_links_is_refused(tmp_path: Path) -> None:
    root = write(tmp_path, "src/a.c")
    (root / "src/again").symlink_to(".")
    assert refusal(root, InputFileError) == ("library-file-refused", WHERE)
    (root / "src/again").unlink()
    (root / "src/self").symlink_to("self")
    assert refusal(root, InputFileError) == ("library-unreadable", f"{root}/src/self")


def test_special_files_are_refused(tmp_path: Path) -> None:
    root = write(tmp_path, "src/a.c")
    os.mkfifo(root / "src/pipe.h")
    assert refusal(root, InputFileError) == ("library-file-refused", WHERE)


def test_invalid_names_are_refused(tmp_path: Path) -> None:
    root = write(tmp_path, "src/a.c", "src/b\n.c")
    assert refusal(root, InputFileError) == ("library-file-refused", WHERE)


def test_too_large_folders_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write(tmp_path, *(f"src/{i}.c" for i in range(5)))
    monkeypatch.setattr(folder_module, "MOST_FILES", 4)
    assert refusal(root, InputFileError) == ("library-too-large", WHERE)
    monkeypatch.setattr(folder_module, "MOST_FILES", 5)
    monkeypatch.setattr(folder_module, "MOST_BYTES", 8)
    assert refusal(root, InputFileError) == ("library-too-large", WHERE)


def test_unreadable_files_are_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path / "nowhere", InputFileError) == ("library-unreadable", f"{tmp_path}/nowhere")
    write(tmp_path, "lib")
    assert refusal(tmp_path / "lib", InputFileError) == ("library-unreadable", f"{tmp_path}/lib")
    root = write(tmp_path / "two", "src/a.c", "src/b.c")
    library = folder_library(root, provider())
    (root / "src/a.c").unlink()
    with raises(InputFileError, "library-unreadable", at=f"{root}/src/a.c"):
        bytes(library.files["src/a.c"])
    (root / "src/b.c").write_text("")
    with raises(InputFileError, "file-changed", at=f"{root}/src/b.c"):
        bytes(library.files["src/b.c"])


# One hash for all ----------------------------------------------------------------------------------------------------


def one(**files: bytes) -> ResolvedLibrary:
    return ResolvedLibrary("lib", "1", {name.replace("__", "/"): content for name, content in files.items()}, (), ())


def test_hash_equals_that_of_sha256sum_output(tmp_path: Path) -> None:
    root = write(tmp_path, "src/a.c", "src/b/c.h", "a.h")
    source = folder_library(root, provider())
    lines = "".join(
        f"{hashlib.sha256((root / name).read_bytes()).hexdigest()}  {name}\n"
        for name in ("a.h", "src/a.c", "src/b/c.h")
    )
    assert content_sha256(source) == hashlib.sha256(lines.encode()).hexdigest()
    assert content_sha256(pickle.loads(pickle.dumps(source))) == content_sha256(source), "workers read the same files"


def test_hash_depends_on_every_byte_and_name() -> None:
    sources = [one(a=b"", b=b""), one(a=b"\0", b=b""), one(a=b"", b=b"\0"), one(a=b""), one(a__b=b"", b=b""), one()]
    assert len({content_sha256(source) for source in sources}) == len(sources)
    assert content_sha256(one(a=b"1", b=b"2")) == content_sha256(one(b=b"2", a=b"1")), "order is not content"
