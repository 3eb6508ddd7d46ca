"""Folders with sources: what of them is the library, what is compiled, and what is refused."""

from __future__ import annotations

import hashlib
import os
import pickle
import re
from pathlib import Path

import pytest

from mlfbuild.core.errors import InputFileError, MlfError, ProjectFileError
from mlfbuild.project import Provision
from mlfbuild.requirements import listing
from mlfbuild.requirements.folder import content_sha256, folder_source
from mlfbuild.requirements.types import Source

WHERE = "mlfbuild.yml:9:3: dependencies.lib"


def provision(**keys) -> Provision:
    return Provision("lib", path="../lib", **{"where": WHERE, **keys})


def write(root: Path, *names: str) -> Path:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"// {name}\n")
    return root


def refusal(root: Path, kind: type[MlfError], **keys) -> str:
    with pytest.raises(kind) as caught:
        folder_source(root, provision(**keys))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_what_is_known_of_a_library_is_its_layout(stub_cmsis_nn_7: Path) -> None:
    source = folder_source(stub_cmsis_nn_7, Provision("cmsis-nn", path="../CMSIS-NN", version="v7.0.0"))
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


def test_every_release_is_laid_out_alike(cmsis_nn_4: Path, cmsis_nn_7: Path) -> None:
    for folder, version, count in ((cmsis_nn_4, "v4.1.0", 72), (cmsis_nn_7, "v7.0.0", 113)):
        source = folder_source(folder, Provision("cmsis-nn", path=str(folder), version=version))
        assert len(source.sources) == count
        assert "Include/arm_nnfunctions.h" in source.files
        assert source.license_files != ()


@pytest.mark.parametrize(
    ("names", "sources", "include_dirs"),
    [
        (["src/a.c", "src/deep/b.c", "include/a.h", "tests/t.c"], ["src/a.c", "src/deep/b.c"], "include"),
        (["Source/a.c", "Include/a.h"], ["Source/a.c"], "Include"),
        (["source/a.c", "inc/a.h"], ["source/a.c"], "inc"),
        (["a.c", "b.c", "a.h", "examples/e.c"], ["a.c", "b.c"], "."),
        (["src/readme.md", "a.c", "include/a.h", "a.h"], ["a.c"], "include"),
        (["include/all.hpp"], [], "include"),
        (["all.h"], [], "."),
    ],
)
def test_an_unknown_library_is_looked_at(
    tmp_path: Path, names: list[str], sources: list[str], include_dirs: str
) -> None:
    source = folder_source(write(tmp_path, *names, "COPYING"), provision())
    assert (list(source.sources), source.include_dirs) == (sources, (include_dirs,))
    assert source.license_files == ("COPYING",)
    assert source.license == "", "nobody reads licences here"
    assert {name for name in names if name.endswith(".h")} <= set(source.files)
    assert ("tests/t.c" in source.files, "examples/e.c" in source.files) == (False, "examples/e.c" in names)


def test_the_project_file_knows_better(tmp_path: Path) -> None:
    write(tmp_path, "src/a.c", "src/b.c", "src/b_test.c", "port/m4.S", "api/a.h", "api2/b.h", "LICENSE")
    source = folder_source(
        tmp_path,
        provision(
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
    assert set(folder_source(tmp_path, provision()).files) == {"src/a.c", "a.h"}


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"sources": ("src/*.c", "scr/*.c")}, r'sources: \'scr/\*.c\' matches no file in ../lib; correct it'),
        ({"sources": ("src/*.C",)}, r"sources: 'src/\*.C' matches no file"),
        ({"sources": ("src",)}, r"sources: 'src' matches no file"),
        ({"sources": ("**",)}, r"sources: 'include/a.h' is not compiled \(what is: .S, .c, .*\); narrow the pattern"),
        ({"include_dirs": ("includes",)}, r"include-dirs: 'includes' is no folder in ../lib; correct it"),
        ({"include_dirs": ("include/a.h",)}, r"include-dirs: 'include/a.h' is no folder in ../lib; correct it"),
        ({"name": "cmsis-nn"}, r"sources: 'Source/\*\*/\*.c' matches no file in ../lib; write sources, as .*"),
        (
            {"name": "cmsis-nn", "sources": ("src/*.c",)},
            "include-dirs: 'Include' is no folder in ../lib; write include-dirs, where it has its headers elsewhere",
        ),
    ],
)  # fmt: skip
def test_a_layout_that_is_not_there_is_a_mistake_of_the_project(tmp_path: Path, keys: dict, reason: str) -> None:
    write(tmp_path, "src/a.c", "include/a.h")
    with pytest.raises(ProjectFileError) as caught:
        folder_source(tmp_path, Provision(**{"name": "lib", "path": "../lib", "where": WHERE} | keys))
    (problem,) = caught.value.problems
    assert re.match(f"{WHERE}.{reason}", problem), problem


# Files that are anybody's --------------------------------------------------------------------------------------------


def test_links_that_stay_inside_are_followed(tmp_path: Path) -> None:
    root = write(tmp_path / "lib", "src/a.c", "shared/b.c", "shared/deep/c.h")
    (root / "src/b.c").symlink_to("../shared/b.c")
    (root / "src/deep").symlink_to(root / "shared/deep")
    source = folder_source(root, provision(sources=("src/*.c",)))
    assert source.sources == ("src/a.c", "src/b.c")
    assert bytes(source.files["src/b.c"]) == b"// shared/b.c\n"
    assert "src/deep/c.h" in source.files


def test_a_library_may_be_behind_a_link(tmp_path: Path) -> None:
    write(tmp_path / "lib", "src/a.c")
    (tmp_path / "link").symlink_to("lib")
    assert folder_source(tmp_path / "link", provision()).sources == ("src/a.c",)


@pytest.mark.parametrize("target", ["/etc/passwd", "../../secret.h", "../../lib2"])
def test_links_that_lead_out_are_refused(tmp_path: Path, target: str) -> None:
    write(tmp_path, "secret.h", "lib2/x.h")
    root = write(tmp_path / "lib", "src/a.c")
    (root / "src/x.h").symlink_to(target)
    assert refusal(root, InputFileError) == (
        f"{WHERE}: 'src/x.h' in {root}: is a link that leads out of the dependency's folder, refused; remove it there"
    )


@pytest.mark.parametrize("key", ["sources", "include_dirs"])
def test_a_folder_behind_a_link_that_leads_out_is_none_of_the_library(tmp_path: Path, key: str) -> None:
    write(tmp_path, "secret/x.h", "secret/x.c")
    root = write(tmp_path / "lib", "src/a.c")
    (root / "api").symlink_to("../secret")
    pattern = {"sources": "api/*.c", "include_dirs": "api"}[key]
    assert f"'{pattern}'" in refusal(root, ProjectFileError, **{key: (pattern,)})


def test_links_outside_of_its_own_folders_do_not_matter(tmp_path: Path) -> None:
    root = write(tmp_path / "lib", "src/a.c", "include/a.h")
    (root / "venv").mkdir()
    (root / "venv/python").symlink_to("/usr/bin/env")
    assert set(folder_source(root, provision()).files) == {"src/a.c", "include/a.h"}


def test_a_loop_of_links_is_refused(tmp_path: Path) -> None:
    root = write(tmp_path, "src/a.c")
    (root / "src/again").symlink_to(".")
    assert "'src/again'" in refusal(root, InputFileError)
    (root / "src/again").unlink()
    (root / "src/self").symlink_to("self")
    assert "cannot be read" in refusal(root, InputFileError)


def test_special_files_are_refused(tmp_path: Path) -> None:
    root = write(tmp_path, "src/a.c")
    os.mkfifo(root / "src/pipe.h")
    assert refusal(root, InputFileError).endswith(": is neither a file nor a folder, refused; remove it there")


def test_names_that_no_build_takes_are_refused(tmp_path: Path) -> None:
    root = write(tmp_path, "src/a.c", "src/b\n.c")
    assert "has a name with control characters or a backslash, refused" in refusal(root, InputFileError)


def test_what_is_larger_than_any_library_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write(tmp_path, *(f"src/{i}.c" for i in range(5)))
    monkeypatch.setattr(listing, "MOST_FILES", 4)
    assert "has more than 4 files; name the folders" in refusal(root, InputFileError)
    monkeypatch.setattr(listing, "MOST_FILES", 5)
    monkeypatch.setattr(listing, "MOST_BYTES", 8)
    assert "has more than 0 MiB; name the folders" in refusal(root, InputFileError)


def test_what_cannot_be_read_gets_a_line(tmp_path: Path) -> None:
    assert "cannot be read: No such file or directory" in refusal(tmp_path / "nowhere", InputFileError)
    write(tmp_path, "lib")
    assert "cannot be read: Not a directory" in refusal(tmp_path / "lib", InputFileError)
    root = write(tmp_path / "two", "src/a.c", "src/b.c")
    source = folder_source(root, provision())
    (root / "src/a.c").unlink()
    with pytest.raises(InputFileError, match=r"a\.c: cannot be read: No such file or directory; check the path"):
        bytes(source.files["src/a.c"])
    (root / "src/b.c").write_text("")
    with pytest.raises(InputFileError, match=r"b\.c: was cut short while it was read; try again"):
        bytes(source.files["src/b.c"])
    with pytest.raises(InputFileError):
        content_sha256(source)


# One hash for all ----------------------------------------------------------------------------------------------------


def one(**files: bytes) -> Source:
    return Source("lib", "1", {name.replace("__", "/"): content for name, content in files.items()}, (), ())


def test_the_hash_is_that_of_sha256sums_lines(tmp_path: Path) -> None:
    root = write(tmp_path, "src/a.c", "src/b/c.h", "a.h")
    source = folder_source(root, provision())
    lines = "".join(
        f"{hashlib.sha256((root / name).read_bytes()).hexdigest()}  {name}\n"
        for name in ("a.h", "src/a.c", "src/b/c.h")
    )
    assert content_sha256(source) == hashlib.sha256(lines.encode()).hexdigest()
    assert content_sha256(pickle.loads(pickle.dumps(source))) == content_sha256(source), "workers read the same files"


def test_every_byte_and_every_name_counts() -> None:
    sources = [one(a=b"", b=b""), one(a=b"\0", b=b""), one(a=b"", b=b"\0"), one(a=b""), one(a__b=b"", b=b""), one()]
    assert len({content_sha256(source) for source in sources}) == len(sources)
    assert content_sha256(one(a=b"1", b=b"2")) == content_sha256(one(b=b"2", a=b"1")), "order is not content"
