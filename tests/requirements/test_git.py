"""Fetching from Git repositories: versions, changes on the server, a damaged cache, the user's configuration."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.core import InputFileError, NotFetchedError, ProcessFailedError, ToolNotFoundError, UsageError
from mlfbuild.requirements.cache import Cache, tree_sha256
from mlfbuild.requirements.git import GitPin, fetch_commit, fetch_version, fetched_pin, git_root
from support.errors import raises
from support.git_remote import FILES, Remote, git, tree_object
from support.http_source import serving

OLD = {"a.c": b"old\n"}


@pytest.fixture
def remote(tmp_path: Path, tool: Callable[[str], str]) -> Remote:
    tool("git")
    return Remote(tmp_path / "remote.git")


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


@pytest.fixture(autouse=True)
def own_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use an empty Git configuration for the user; return its path."""
    path = tmp_path / "gitconfig"
    path.touch()
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(path))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return path


def content(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def fetch(remote: Remote, version: str, cache: Cache) -> GitPin:
    return fetch_version(remote.url, version, cache)[0]


def fetched(remote: Remote, version: str, cache: Cache) -> dict[str, bytes]:
    return content(git_root(remote.url, fetch(remote, version, cache), cache))


# Versions ------------------------------------------------------------------------------------------------------------


def test_tags_branches_and_commits_are_versions(remote: Remote, cache: Cache) -> None:
    old = remote.commit(OLD)
    new = remote.commit(parent=old)
    remote.tag("v1", old)
    remote.tag("v2", annotated=True)
    for version, commit in {
        "v1": old, "v2": new, "main": new, old: old, new.upper(): new, old[:8]: old, new[:7].upper(): new,
    }.items():  # fmt: skip
        pin = fetch(remote, version, cache)
        assert pin.commit == commit, version
        assert content(git_root(remote.url, pin, cache)) == (OLD if commit == old else FILES), version


def test_a_path_is_an_address(remote: Remote, cache: Cache) -> None:
    remote.commit()
    pin, _ = fetch_version(str(remote.folder), "main", cache)
    assert content(git_root(str(remote.folder), pin, cache)) == FILES


def test_a_tag_precedes_a_branch_and_both_precede_an_abbreviation(remote: Remote, cache: Cache) -> None:
    old = remote.commit(OLD)
    new = remote.commit(branch="same")
    remote.tag("same", old)
    assert fetch(remote, "same", cache).commit == old
    remote.tag(old[:7], new)
    assert fetch(remote, old[:7], cache).commit == new
    git(remote.folder, "update-ref", f"refs/heads/{old}", new)
    assert fetch(remote, old, cache).commit == old, "a full hash is always a commit"


def test_unknown_version_is_refused(remote: Remote, cache: Cache) -> None:
    with raises(UsageError, "git-version-unknown", at=remote.url):
        fetch(remote, "v1", cache)
    remote.commit()
    for name in ("v6.0.0", "v7.0.0", "release/7"):
        remote.tag(name)
    for version, hint in (("7.0.0", '"v7.0.0"'), ("nightly", "v7.0.0, v6.0.0, release/7, main")):
        with raises(UsageError, "git-version-unknown", at=remote.url) as error:
            fetch(remote, version, cache)
        assert hint in error.value.hint
    remote.tag("notes", remote.blob(b"no commit"), annotated=True)
    for version in ("0123456789abcdef", "0" * 40, "notes"):
        with raises(UsageError, "git-version-unknown", at=remote.url):
            fetch(remote, version, cache)


@pytest.mark.parametrize(
    "version", ["", "-v1", "--upload-pack=touch x", "a b", "v1\n", "a..b", "v1^{tree}", "HEAD~1", "x:y", "*", "a.lock"]
)
def test_versions_are_no_words_of_a_git_command(remote: Remote, cache: Cache, version: str) -> None:
    remote.commit()
    with raises(UsageError, "git-version-unknown", at=remote.url):
        fetch(remote, version, cache)


@pytest.mark.parametrize("command", ["ext::sh -c 'touch {}'", "--upload-pack=touch {}", "foo://host/x", "x::{}"])
def test_addresses_that_run_programs_are_refused(cache: Cache, tmp_path: Path, command: str) -> None:
    with raises(UsageError, "git-address-invalid", at="git"):
        fetch_version(command.format(tmp_path / "ran"), "main", cache)
    assert not (tmp_path / "ran").exists()


def test_address_rewritten_to_a_program_is_refused(cache: Cache, tmp_path: Path, own_configuration: Path) -> None:
    own_configuration.write_text(f'[url "ext::touch {tmp_path}/ran "]\n  insteadOf = https://host/\n')
    with raises(ProcessFailedError, "git-failed", at="https://host/x"):
        fetch_version("https://host/x", "main", cache)
    assert not (tmp_path / "ran").exists()


# Changes on the server -----------------------------------------------------------------------------------------------


def test_a_moved_tag(remote: Remote, cache: Cache) -> None:
    old = remote.commit(OLD)
    remote.tag("v1")
    pin = fetch(remote, "v1", cache)
    assert pin.commit == old
    new = remote.commit()
    remote.tag("v1")
    assert fetched_pin(remote.url, "v1", cache) == pin, "does not use the network"
    assert fetch_commit(remote.url, "v1", pin, cache) is False, "the cache has the locked commit"
    assert fetch(remote, "v1", cache).commit == new
    assert content(git_root(remote.url, pin, cache)) == OLD, "the locked commit stays"


def test_locked_commit_without_a_branch(remote: Remote, cache: Cache) -> None:
    old = remote.commit(OLD)
    pin = fetch(remote, "main", cache)
    remote.commit(parent=old)
    shutil.rmtree(cache.root)
    assert fetch_commit(remote.url, "main", pin, cache) is True
    assert content(git_root(remote.url, pin, cache)) == OLD


def test_a_locked_commit_after_a_force_push(remote: Remote, cache: Cache) -> None:
    remote.commit(OLD)
    pin = fetch(remote, "main", cache)
    remote.commit()
    assert fetch(remote, "main", cache) != pin
    shutil.rmtree(cache.root)
    git(remote.folder, "config", "uploadpack.allowAnySHA1InWant", "true")
    assert fetch_commit(remote.url, "main", pin, cache) is True, "the server still has it"
    remote.forget()
    assert fetch_commit(remote.url, "main", pin, cache) is False, "the cache has it"
    shutil.rmtree(cache.root)
    with raises(UsageError, "git-commit-gone", at=remote.url):
        fetch_commit(remote.url, "main", pin, cache)


def test_a_lock_with_the_hash_of_other_files(remote: Remote, cache: Cache) -> None:
    old = remote.commit(OLD)
    wrong = GitPin(old, "0" * 64)
    for _ in range(2):  # first not in the cache, then in it
        with raises(InputFileError, "commit-other-files", at=f"commit {old}"):
            fetch_commit(remote.url, "main", wrong, cache)
    fetch(remote, "main", cache)
    with raises(InputFileError, "commit-other-files", at=f"commit {old}"):
        git_root(remote.url, wrong, cache)


# The cache -----------------------------------------------------------------------------------------------------------


def test_commit_that_was_not_fetched_is_refused(remote: Remote, cache: Cache) -> None:
    with raises(NotFetchedError, "commit-not-fetched", at=remote.url) as error:
        git_root(remote.url, GitPin(remote.commit(), "0" * 64), cache)
    assert error.value.exit_code == 3 and not cache.root.exists()


def test_a_build_needs_no_repository_no_git_and_no_writable_cache(
    remote: Remote, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote.commit()
    pin = fetch(remote, "main", cache)
    remote.remove()
    monkeypatch.setenv("MLFBUILD_GIT", "/nowhere/git")
    monkeypatch.setattr(Cache, "work", lambda *_: pytest.fail("the cache would be written"))
    assert content(git_root(remote.url, pin, cache)) == FILES
    assert fetch_commit(remote.url, "main", pin, cache) is False
    assert fetch_version(remote.url, pin.commit, cache) == (pin, False)


def _link(root: Path) -> None:
    path = root / "Source/f.c"
    path.rename(root.parent / "f.c")
    path.symlink_to(root.parent / "f.c")


DAMAGES: dict[str, Callable[[Path], object]] = {
    "an edited file": lambda root: (root / "Source/f.c").write_text("int f(void) { return 2; }\n"),
    "a missing file": lambda root: (root / "README.md").unlink(),
    "another file": lambda root: (root / "Source/more.c").touch(),
    "a renamed file": lambda root: (root / "Source/f.c").rename(root / "Source/g.c"),
    "a truncated file": lambda root: os.truncate(root / "README.md", 0),
    "a link in place of a file": _link,
    "no files": shutil.rmtree,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_files_are_refused_and_fetched_again(remote: Remote, cache: Cache, damage: str) -> None:
    remote.commit()
    pin = fetch(remote, "main", cache)
    DAMAGES[damage](git_root(remote.url, pin, cache))
    with raises(NotFetchedError, "commit-not-fetched", at=remote.url):
        git_root(remote.url, pin, cache)
    assert fetch_commit(remote.url, "main", pin, cache) is True
    assert content(git_root(remote.url, pin, cache)) == FILES


def test_a_poisoned_cache_is_detected(remote: Remote, cache: Cache) -> None:
    remote.commit()
    pin = fetch(remote, "main", cache)
    root = git_root(remote.url, pin, cache)
    (root / "Source/f.c").write_text("int f(void) { return 666; }\n")
    (cache.root / f"trees/{pin.commit}.sha256").write_text(f"{tree_sha256(root)}\n")
    with raises(InputFileError, "commit-other-files", at=f"commit {pin.commit}"):
        git_root(remote.url, pin, cache)
    assert fetch_commit(remote.url, "main", pin, cache) is True, "the lock file decides"
    assert content(git_root(remote.url, pin, cache)) == FILES


def test_permissions_and_times_are_ignored(remote: Remote, cache: Cache) -> None:
    remote.commit({"run.sh": b"true\n"}, modes={"run.sh": "100755"})
    pin = fetch(remote, "main", cache)
    root = git_root(remote.url, pin, cache)
    (root / "run.sh").chmod(0o600)
    os.utime(root / "run.sh", (0, 0))
    assert git_root(remote.url, pin, cache) == root


# Byte for byte -------------------------------------------------------------------------------------------------------


ODD = {
    ".gitattributes": b"* text eol=crlf\n*.c ident filter=evil\nhidden export-ignore\nv.txt export-subst\n"
    b"*.bin filter=lfs diff=lfs merge=lfs -text\n*.u working-tree-encoding=UTF-16\n",
    "a.c": b"/* $Id$ */\nint a;\n",
    "crlf.c": b"int b;\r\n",
    "hidden": b"here\n",
    "v.txt": b"$Format:%H$\n",
    "big.bin": b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 12345\n",
    "w.u": "ä\n".encode(),
    "empty": b"",
    "sp ace/ä.c": b"\0\xff",
    "a.b": b"1", "a/b": b"2", "a-b/c": b"3", "a0": b"4",
}  # fmt: skip


def test_attributes_filters_and_hooks_are_ignored(
    remote: Remote, cache: Cache, tmp_path: Path, own_configuration: Path
) -> None:
    hooks, template = tmp_path / "hooks", tmp_path / "template"
    for folder in (hooks, template / "hooks"):
        folder.mkdir(parents=True)
        for name in ("post-checkout", "reference-transaction", "post-index-change"):
            (folder / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
            (folder / name).chmod(0o755)
    program = f"touch {tmp_path}/ran; cat"
    own_configuration.write_text(
        f"[core]\n autocrlf = true\n eol = crlf\n hooksPath = {hooks}\n attributesFile = {tmp_path}/attributes\n"
        f"[init]\n templateDir = {template}\n"
        f'[filter "evil"]\n smudge = "{program}"\n clean = "{program}"\n required = true\n'
        f'[filter "lfs"]\n smudge = "{program}"\n process = "{program}"\n required = true\n'
    )
    (tmp_path / "attributes").write_text("* filter=evil\n")
    remote.commit(ODD)
    assert fetched(remote, "main", cache) == ODD
    assert not (tmp_path / "ran").exists()


def test_submodules_are_empty_folders(remote: Remote, cache: Cache) -> None:
    files = {**FILES, "libs/other": b"0" * 39 + b"1"}
    remote.commit(files, modes={"libs/other": "160000"})
    root = git_root(remote.url, fetch(remote, "main", cache), cache)
    assert content(root) == FILES
    assert list((root / "libs/other").iterdir()) == []


def test_a_repository_with_sha256_hashes(tmp_path: Path, cache: Cache) -> None:
    remote = Remote(tmp_path / "remote", hashes="sha256")
    assert len(remote.commit({**FILES, "deep/er/f.c": b"f"})) == 64
    assert fetched(remote, "main", cache) == {**FILES, "deep/er/f.c": b"f"}
    assert fetched(remote, remote.hash_of("main"), cache).keys() == {*FILES, "deep/er/f.c"}


# Refusals ------------------------------------------------------------------------------------------------------------


def test_links_that_stay_inside_are_links(remote: Remote, cache: Cache) -> None:
    links = {"docs": b"Include", "Source/up.h": b"../Include/lib.h", "loop": b"loop", "later": b"not/there/yet"}
    remote.commit({**FILES, **links}, modes=dict.fromkeys(links, "120000"))
    root = git_root(remote.url, fetch(remote, "main", cache), cache)
    assert {path: bytes((root / path).readlink()) for path in links} == links
    assert (root / "Source/up.h").read_bytes() == FILES["Include/lib.h"]


@pytest.mark.parametrize(
    "links",
    [
        {"out": b"/etc/passwd"},
        {"out": b"../x"},
        {"Source/out": b"../../x"},
        {"here": b".", "out": b"here/../x"},
        {"down": b"Source", "out": b"down/../../x"},
    ],
)
def test_links_that_lead_out_are_refused(remote: Remote, cache: Cache, links: dict[str, bytes]) -> None:
    commit = remote.commit({**FILES, **links}, modes=dict.fromkeys(links, "120000"))
    with raises(InputFileError, "link-leads-out", at=f"{remote.url}: commit {commit}"):
        fetch(remote, "main", cache)
    assert not list(cache.root.glob("trees/*"))


@pytest.mark.parametrize("names", [(".git",), (".GIT",), ("..",), ("x.c", "x.c"), ("b", "a")])
def test_unsafe_trees_are_refused(remote: Remote, cache: Cache, names: tuple[str, ...]) -> None:
    blob = remote.blob(b"x")
    remote.commit_tree(tree_object(*(("100644", name, blob) for name in names)))
    with raises(ProcessFailedError, "git-failed", at=remote.url):
        fetch(remote, "main", cache)
    assert not list(cache.root.glob("trees/*")) and not list(cache.root.glob("git/*"))


def test_a_commit_without_files(remote: Remote, cache: Cache) -> None:
    commit = remote.commit_tree(b"")
    with raises(InputFileError, "commit-without-files", at=f"{remote.url}: commit {commit}"):
        fetch(remote, "main", cache)


# Surroundings --------------------------------------------------------------------------------------------------------


def test_variables_of_another_repository(remote: Remote, cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    remote.commit()
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"):
        monkeypatch.setenv(name, "/nowhere")
    monkeypatch.setenv("GIT_NAMESPACE", "x")
    monkeypatch.setenv("GIT_TRACE", "1")
    assert fetched(remote, "main", cache) == FILES


def test_a_mirror_in_the_users_configuration(remote: Remote, cache: Cache, own_configuration: Path) -> None:
    remote.commit()
    own_configuration.write_text(f'[url "{remote.folder.parent}/"]\n  insteadOf = https://example.invalid/\n')
    url = "https://example.invalid/remote.git"
    assert content(git_root(url, fetch_version(url, "main", cache)[0], cache)) == FILES


def test_a_server_of_plain_files(remote: Remote, cache: Cache) -> None:
    old = remote.commit(OLD)
    new = remote.commit(parent=old)
    remote.tag("v1", annotated=True)
    git(remote.folder, "update-server-info")
    with serving() as source:
        for path in remote.folder.rglob("*"):
            if path.is_file():
                source.files[f"r.git/{path.relative_to(remote.folder)}"] = path.read_bytes()
        url = source.url("r.git")
        assert fetch_version(url, "v1", cache)[0].commit == new
        assert fetch_version(url, old, cache)[0].commit == old


def test_missing_git_is_reported(remote: Remote, cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ToolNotFoundError):
        fetch(remote, "main", cache)


def test_missing_repository_is_reported(cache: Cache, tmp_path: Path) -> None:
    with raises(ProcessFailedError, "git-failed", at=f"file://{tmp_path}/nothing") as error:
        fetch_version(f"file://{tmp_path}/nothing", "main", cache)
    assert "does not appear to be a git repository" in error.value.output


def test_control_characters_of_a_server_are_escaped(
    remote: Remote, cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote.commit()
    ssh = tmp_path / "ssh"
    ssh.write_text(
        "#!/bin/sh\ni=0; while [ $i -lt 200 ]; do i=$((i+1)); printf '\\033[2Jline %d\\n' $i >&2; done; exit 1\n"
    )
    ssh.chmod(0o755)
    monkeypatch.setenv("GIT_SSH", str(ssh))
    monkeypatch.setenv("GIT_SSH_VARIANT", "simple")
    with pytest.raises(ProcessFailedError) as error:
        fetch_version("ssh://host/x", "main", cache)
    assert "\x1b" not in error.value.output and r"\x1b[2Jline 200" in error.value.output
    assert len(error.value.output.splitlines()) == 50
