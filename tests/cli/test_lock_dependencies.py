"""Dependencies in the lock file: a build uses the locked commit, regardless of later changes to a tag or branch."""

import shutil
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import PurePosixPath

import pytest

from mlfbuild.archive import pack_archive
from mlfbuild.core.files import sha256
from mlfbuild.library import CodegenFile, ExternalDependency, Library
from mlfbuild.requirements.lock import Lock, read_lock
from support.command import Ended, Folder
from support.git_remote import FILES, Remote
from support.libraries import native_module

NEW = {**FILES, "Source/f.c": b"int f(void) { return 2; }\n"}
ARCHIVE = "build/mlf/pc/alpha.tar"

SETTINGS = "sources: Source/*.c; include-dirs: Include"


@pytest.fixture
def remote(tmp_path_factory: pytest.TempPathFactory, tool: Callable[..., str]) -> Remote:
    """Return a repository with a library, the branch ``main`` and the tag ``v1``."""
    tool("git", "gcc")
    remote = Remote(tmp_path_factory.mktemp("remote") / "lib.git")
    remote.commit()
    remote.tag("v1")
    return remote


@pytest.fixture
def project(folder: Folder, remote: Remote, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """Return a project with one archive that requires and bundles the library of ``remote`` at tag v1."""
    monkeypatch.setenv("MLFBUILD_CACHE", str(folder.root / "cache"))
    code = CodegenFile(PurePosixPath("host/src/alpha_lib1.c"), b'#include "lib.h"\nint g(void) { return f(); }\n')
    requirement = ExternalDependency("lib", "https://example.org/lib", "git", "v1")
    alpha = native_module("alpha")
    module = replace(alpha, model_id="", codegen=(*alpha.codegen, code), external_dependencies=(requirement,))
    folder.write("models/alpha.tar", pack_archive(Library((module,))))
    write_project(folder, f"git: {remote.url}, version: v1, bundle: true")
    return folder


def write_project(folder: Folder, lib: str) -> None:
    folder.write(
        "mlfbuild.yml",
        "mlfbuild: 1\ntargets: {pc: {cpu: host}}\nmodels: {alpha: {source: models/alpha.tar}}\n"
        f"dependencies:\n  lib: {{sources: [Source/*.c], include-dirs: [Include], {lib}}}\n",
    )


MAKE = ("generate", "--model", "alpha")
PLACE = "mlfbuild.yml:5:3: dependencies.lib"


def lock_of(folder: Folder) -> Lock:
    lock = read_lock(folder.root / "mlfbuild.lock")
    assert lock is not None
    return lock


def taken(folder: Folder) -> bytes:
    """Return the library's content in the archive."""
    with tarfile.open(folder.root / ARCHIVE) as archive:
        (name,) = [name for name in archive.getnames() if name.endswith("Source/f.c")]
        file = archive.extractfile(name)
        assert file is not None
        return file.read()


def hash_of_all(files: Mapping[str, bytes]) -> str:
    """Return the hash of ``sha256sum``'s output for the library's files, as documented in docs/dependencies.md."""
    taken = [name for name in sorted(files) if name.startswith(("Include/", "LICENSE", "Source/"))]
    return sha256("".join(f"{sha256(files[name])}  {name}\n" for name in taken).encode())


def drift(folder: Folder) -> str:
    """Return the difference that stops a frozen build."""
    error = folder.run(*MAKE, "--frozen", "--format", "json").error
    assert (error["exit_code"], error["code"]) == (1, "lock-drift")
    return str(error["reason"])


def make(folder: Folder, *words: str) -> Ended:
    """Build archive and tree of the model."""
    return folder.run(*MAKE, *words)


def test_build_uses_the_locked_commit_until_it_is_locked_again(project: Folder, remote: Remote) -> None:
    first = remote.hash_of("main")
    assert project.run("lock").status == 0
    entry = lock_of(project).dependencies["lib"]
    assert (entry.kind, entry.place, entry.version) == ("git", remote.url, "v1")
    assert entry.commit == first
    assert entry.content == hash_of_all(FILES)

    second = remote.commit(NEW, parent=first)
    remote.tag("v1")
    shutil.rmtree(project.root / "build")
    assert make(project, "--frozen").status == 0
    assert taken(project) == FILES["Source/f.c"]
    assert project.run("fetch").status == 0, "takes what is locked"
    assert make(project).status == 0
    assert taken(project) == FILES["Source/f.c"]

    changed = project.run("lock")
    assert f"dependency lib: v1: {first[:12]} -> {second[:12]} (v1 moved)\n" in changed.out
    assert changed.out.count("dependency lib") == 1, "the commit says that there are other files"
    assert lock_of(project).dependencies["lib"].content == hash_of_all(NEW)
    assert "archive of alpha for pc: " in changed.out
    assert make(project, "--frozen").status == 0
    assert taken(project) == NEW["Source/f.c"]


def test_offline_lock_keeps_commits(project: Folder, remote: Remote) -> None:
    assert project.mistakes("lock", "--offline") == [("lock-offline-unlocked", PLACE)]
    assert not (project.root / "mlfbuild.lock").exists()
    assert project.run("lock").status == 0
    before = lock_of(project)
    remote.remove()
    assert project.run("lock", "--offline").out == "mlfbuild.lock: everything is as locked\n"
    assert project.run("lock", "--check").status == 0
    assert project.run("lock", "--target", "pc").status == 0, "locks the archives anew, not what they are made with"
    assert project.run("lock").status == 7
    assert lock_of(project) == before


def test_unlocked_or_changed_repository_is_a_drift(project: Folder, remote: Remote) -> None:
    assert project.mistakes(*MAKE) == [("provider-not-locked", PLACE)]
    assert project.run("lock").status == 0
    assert make(project).status == 0
    remote.tag("1")
    write_project(project, f'git: {remote.url}, version: "1", bundle: true')
    assert project.mistakes(*MAKE) == [("provider-not-locked", PLACE)]
    assert project.refused(*MAKE, "--frozen") == (1, "lock-drift", "mlfbuild.lock")
    assert project.run("lock").out.startswith("dependency lib: version: v1 -> 1\n")
    assert make(project, "--frozen").status == 0


def test_locked_commit_must_be_fetched_first(project: Folder) -> None:
    assert project.run("lock").status == 0
    for name in ("cache", "build"):
        shutil.rmtree(project.root / name)
    assert project.refused(*MAKE, "--frozen")[:2] == (3, "commit-not-fetched")
    before = lock_of(project)
    assert project.run("lock", "--offline").status == 3
    assert lock_of(project) == before
    assert project.run("fetch").status == 0
    assert make(project, "--frozen").status == 0


def test_folder_is_locked_by_hash_of_all_files(project: Folder) -> None:
    for name, content in FILES.items():
        project.write(f"lib/{name}", content)
    write_project(project, "path: lib, version: v1, bundle: true")
    assert project.run("lock").status == 0
    assert str(project.root) not in (project.root / "mlfbuild.lock").read_text()
    assert make(project, "--frozen").status == 0
    project.write("lib/Source/f.c", NEW["Source/f.c"])
    before = (project.root / ARCHIVE).read_bytes()
    assert drift(project).startswith("dependency lib: files: locked ")
    assert (project.root / ARCHIVE).read_bytes() == before
    assert make(project).status == 0, "any other build takes what there is"
    assert taken(project) == NEW["Source/f.c"]
    assert project.run("lock").out.startswith("dependency lib: files: ")


def test_build_settings_of_a_library_are_locked(project: Folder, remote: Remote) -> None:
    assert project.run("lock").status == 0
    assert lock_of(project).dependencies["lib"].settings == SETTINGS
    options = "compile-options: [-O3, -fno-strict-aliasing], public-headers: true"
    write_project(project, f"git: {remote.url}, version: v1, bundle: true, {options}")
    line = f"locked {SETTINGS}, here {SETTINGS}; compile-options: -O3 -fno-strict-aliasing; public-headers: true"
    assert drift(project) == f"dependency lib: settings: {line}"
    assert f"dependency lib: settings: {SETTINGS} -> {SETTINGS}; compile-options: -O3" in project.run("lock").out
    assert make(project, "--frozen").status == 0


def test_an_archive_is_locked_by_its_hash_and_a_package_by_its_version(project: Folder) -> None:
    path = project.root / "lib.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, content in FILES.items():
            archive.add(project.write(f"lib/{name}", content), f"lib-1/{name}")
    digest = sha256(path.read_bytes())
    text = f'url: file://{path}, sha256: {digest}, version: v1, bundle: true}}\n  other: {{package: Other, version: "2"'
    write_project(project, text)
    assert project.run("lock").status == 0
    found = lock_of(project).dependencies
    assert (found["lib"].kind, found["lib"].sha256, found["lib"].content) == ("url", digest, hash_of_all(FILES))
    assert (found["other"].kind, found["other"].place, found["other"].version) == ("package", "Other", "2")
    assert make(project, "--frozen").status == 0
    write_project(project, text.replace('"2"', '"3"'))
    assert drift(project) == "dependency other: version: locked 2, here 3"
