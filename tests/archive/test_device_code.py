"""Code for other devices than the host, ``codegen/<device>/``, through all forms of an archive."""

import re
from dataclasses import replace
from pathlib import PurePosixPath

import pytest

from mlfbuild.archive import archive_files, convert, read_files, rename_modules
from mlfbuild.archive.compare import compare
from mlfbuild.archive.describe import describe, describe_text
from mlfbuild.archive.merge import merge
from mlfbuild.archive.split import split
from mlfbuild.archive.validate import validate
from mlfbuild.core import InputFileError
from mlfbuild.library import Content, Library, all_files, device_code
from support.device_archives import COMMANDS, DEVICE_FILES, device_files
from support.errors import raises


def bytes_of(files: dict[str, Content], *paths: str) -> dict[str, bytes]:
    return {path: bytes(files[path]) for path in paths}


@pytest.fixture
def library() -> Library:
    return read_files(device_files(), "net.tar")


def test_the_hosts_code_has_no_file_of_another_device(library: Library) -> None:
    (module,) = library.modules
    assert {file.path.parts[0] for file in module.codegen} == {"host"}
    (accel,) = device_code(module)
    assert accel.name == "accel"
    assert [str(file.path) for file in accel.files] == [
        "accel/include/accel.h", "accel/lib/net_commands.bin", "accel/src/net_lib0.c",
    ]  # fmt: skip
    assert [str(file.path) for file in accel.sources] == ["accel/src/net_lib0.c"]
    assert [str(file.path) for file in accel.blobs] == ["accel/lib/net_commands.bin"]
    assert accel.objects == ()
    assert accel.size == sum(map(len, DEVICE_FILES.values()))


@pytest.mark.parametrize("version", range(1, 8))
def test_every_version_keeps_the_files(library: Library, version: int) -> None:
    files = archive_files(library, version)
    name = "lib0.c" if version < 3 else "net_lib0.c"
    contents = {path.replace("net_lib0.c", name): content for path, content in DEVICE_FILES.items()}
    assert bytes_of(files, *contents) == contents
    again = convert(read_files(files, "net.tar"), 7)
    assert again.modules[0].device_files == library.modules[0].device_files
    assert compare(library, again).equal


def test_unnamed_code_of_devices_gets_the_name_of_its_module() -> None:
    code = {"codegen/accel/src/lib0.c": b"int accel;\n", "codegen/accel/lib/lib0.bin": b"\0"}
    converted = convert(read_files(device_files(code, ""), "net.tar"), 7)
    assert [str(file.path) for file in converted.modules[0].device_files] == [
        "accel/lib/net_lib0.bin", "accel/src/net_lib0.c",
    ]  # fmt: skip


def test_inspect_has_the_files_and_sizes_of_each_device(library: Library) -> None:
    (module,) = describe(library)["modules"]
    assert {file["path"].split("/")[1] for file in module["files"]} == {"host"}
    assert module["device_code"] == [
        {
            "device": "accel",
            "size": sum(map(len, DEVICE_FILES.values())),
            "files": [{"path": path, "size": len(content)} for path, content in sorted(DEVICE_FILES.items())],
        }
    ]
    lines = describe_text(library).splitlines()
    assert [line for line in lines if line.endswith("3 files for the device accel")]
    assert [line for line in lines if line.split() == [str(len(COMMANDS)), "codegen/accel/lib/net_commands.bin"]]


def test_the_page_for_people_names_the_folders(library: Library) -> None:
    assert "`codegen/accel/`" in bytes(archive_files(library)["README.md"]).decode()


def test_compare_counts_a_change_of_device_code(library: Library) -> None:
    other = read_files({**device_files(), "codegen/accel/lib/net_commands.bin": b"other"}, "other.tar")
    (difference,) = compare(library, other).differences
    assert (difference.what, difference.name) == ("code", "codegen/accel/lib/net_commands.bin")


def test_validate_names_each_file() -> None:
    found = [finding.place for finding in validate(device_files(), "net.tar").findings if finding.code == "MLF106"]
    assert found == sorted(DEVICE_FILES)


def test_renaming_a_module_renames_its_device_code(library: Library) -> None:
    (module,) = rename_modules(library, {"net": "denoiser"}).modules
    files = {str(file.path): file.data for file in module.device_files}
    assert sorted(files) == ["accel/include/accel.h", "accel/lib/denoiser_commands.bin", "accel/src/denoiser_lib0.c"]
    assert files["accel/lib/denoiser_commands.bin"] == COMMANDS
    assert b"tvmgen_denoiser_accel_scale" in files["accel/src/denoiser_lib0.c"]


def test_merged_archives_keep_the_device_code_of_each_module(library: Library) -> None:
    """Both define ``accel_flavour``, which only their own code calls, and both have a file ``commands.bin``."""
    other = rename_modules(library, {"net": "other"})
    moved = [
        replace(
            one,
            modules=tuple(
                replace(
                    module,
                    device_files=tuple(
                        replace(file, path=file.path.with_name("commands.bin"), content=module.name.encode())
                        if file.path.suffix == ".bin"
                        else file
                        for file in module.device_files
                    ),
                )
                for module in one.modules
            ),
        )
        for one in (library, other)
    ]
    merged = merge([("a.tar", moved[0]), ("b.tar", moved[1])])
    merged = read_files(archive_files(merged), "both.tar")
    for module in merged.modules:
        (accel,) = device_code(module)
        assert [file.data for file in accel.blobs] == [module.name.encode()]
        assert [str(file.path) for file in accel.sources] == [f"accel/src/{module.name}_lib0.c"]
        assert all(file.path.parts[0] == "host" for file in module.codegen)
    assert [one.modules[0].device_files for one in split(merged, "both.tar").values()] == [
        module.device_files for module in merged.modules
    ]
    sources = [file for module in merged.modules for file in all_files(module) if file.path.parts[0] == "accel"]
    names = [name for file in sources for name in re.findall(rb"(\w*accel_flavour)\(", file.data)]
    assert len(names) == len({*names}) == 2


def test_a_blob_of_no_module_is_refused(library: Library) -> None:
    both = merge([("a.tar", library), ("b.tar", rename_modules(library, {"net": "other"}))])
    files = {**archive_files(both), "codegen/accel/lib/stray.bin": b"\0"}
    with raises(InputFileError, "archive-code-unowned") as caught:
        read_files(files, "both.tar")
    assert PurePosixPath(caught.value.place.split(": ")[1]) == PurePosixPath("codegen/accel/lib/stray.bin")
