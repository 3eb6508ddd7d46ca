"""What is fetched from Git repositories, whatever happens to them, to the cache, and around both."""

from __future__ import annotations

import hashlib
import itertools
import os
import random
import re
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mlfbuild.core.errors import InputFileError, MlfError, NotFetchedError, ProcessFailedError, UsageError
from mlfbuild.requirements.cache import Cache
from mlfbuild.requirements.git import GitPin, fetch_git, fetch_pinned, fetch_version, fetched_pin, git_root
from support.git_remote import FILES, Remote, git, tree_object
from support.http_source import serving


@pytest.fixture
def remote(tmp_path: Path, tool: Callable[[str], str]) -> Remote:
    tool("git")
    return Remote(tmp_path / "remote.git")


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


@pytest.fixture(autouse=True)
def own_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Git's configuration of the user of these tests."""
    path = tmp_path / "gitconfig"
    path.touch()
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(path))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return path


def content(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def fetched(remote: Remote, version: str, cache: Cache) -> dict[str, bytes]:
    return content(git_root(remote.url, fetch_git(remote.url, version, cache), cache))


def told(error: pytest.ExceptionInfo[MlfError]) -> str:
    text = error.value.message
    assert "\n" not in text
    return text


# Versions ------------------------------------------------------------------------------------------------------------


def test_a_tag_a_branch_and_a_commit_are_versions(remote: Remote, cache: Cache) -> None:
    old = remote.commit({"a.c": b"old\n"})
    new = remote.commit(parent=old)
    remote.tag("v1", old)
    remote.tag("v2", annotated=True)
    for version, commit in {
        "v1": old, "v2": new, "main": new, old: old, new.upper(): new, old[:8]: old, new[:7].upper(): new,
    }.items():  # fmt: skip
        pin = fetch_git(remote.url, version, cache)
        assert pin == GitPin(commit, remote.hash_of(f"{commit}^{{tree}}")), version
        assert content(git_root(remote.url, pin, cache)) == ({"a.c": b"old\n"} if commit == old else FILES), version


def test_a_path_is_an_address_too(remote: Remote, cache: Cache) -> None:
    remote.commit()
    pin = fetch_git(str(remote.folder), "main", cache)
    assert content(git_root(str(remote.folder), pin, cache)) == FILES


def test_a_tag_comes_before_a_branch_and_both_before_an_abbreviation(remote: Remote, cache: Cache) -> None:
    old = remote.commit({"a.c": b"old\n"})
    new = remote.commit(branch="same")
    remote.tag("same", old)
    assert fetch_git(remote.url, "same", cache).commit == old
    remote.tag(old[:7], new)
    assert fetch_git(remote.url, old[:7], cache).commit == new
    remote.tag(old[:7], old)
    assert fetch_git(remote.url, old[:7], cache).commit == old, "tags of such names move, too"
    git(remote.folder, "update-ref", f"refs/heads/{old}", new)
    assert fetch_git(remote.url, old, cache).commit == old, "a full hash is always a commit"


def test_a_version_that_is_not_there(remote: Remote, cache: Cache) -> None:
    with pytest.raises(UsageError, match="has no tag, branch or commit 'v1', it is empty; check the address"):
        fetch_git(remote.url, "v1", cache)
    remote.commit()
    for name in ("v6.0.0", "v7.0.0", "release/7"):
        remote.tag(name)
    with pytest.raises(UsageError) as error:
        fetch_git(remote.url, "7.0.0", cache)
    assert told(error).startswith(f"{remote.url}: has no tag, branch or commit '7.0.0' (did you mean 'v7.0.0'")
    with pytest.raises(UsageError, match=re.escape("'nightly'; choose one of v7.0.0, v6.0.0, release/7, main")):
        fetch_git(remote.url, "nightly", cache)
    with pytest.raises(UsageError, match="has no commit 0123456789abcdef, or not any more"):
        fetch_git(remote.url, "0123456789abcdef", cache)
    assert not (cache.root / "git").exists() and not any((cache.root / "tmp").iterdir())


def test_a_tag_of_something_else_than_a_commit(remote: Remote, cache: Cache) -> None:
    remote.commit()
    remote.tag("notes", remote.blob(b"no commit"), annotated=True)
    with pytest.raises(UsageError, match="notes is another object than a commit; choose another version"):
        fetch_git(remote.url, "notes", cache)


def test_an_abbreviation_of_two_commits(remote: Remote, cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlfbuild.requirements.git_versions._ABBREVIATED", re.compile("[0-9a-f]{4,39}"))
    tree = git(remote.folder, "mktree")
    seen: dict[str, bytes] = {}
    for number in itertools.count():  # until one of 65,536 beginnings is there twice
        who = f"A <a@b> {number} +0000"
        text = f"tree {tree}\nauthor {who}\ncommitter {who}\n\n".encode()
        begin = hashlib.sha1(b"commit %d\0" % len(text) + text).hexdigest()[:4]
        if begin in seen:
            break
        seen[begin] = text
    for branch, commit in (("one", seen[begin]), ("two", text)):
        name = git(remote.folder, "hash-object", "-w", "-t", "commit", "--stdin", data=commit)
        git(remote.folder, "update-ref", f"refs/heads/{branch}", name)
    with pytest.raises(UsageError, match=f"more than one commit begins with {begin}; add digits"):
        fetch_git(remote.url, begin, cache)


@pytest.mark.parametrize(
    "version", ["", "-v1", "--upload-pack=touch x", "a b", "v1\n", "a..b", "v1^{tree}", "HEAD~1", "x:y", "*", "a.lock"]
)
def test_versions_that_git_would_take_for_something_else(remote: Remote, cache: Cache, version: str) -> None:
    remote.commit()
    with pytest.raises(UsageError, match="is no name of a tag, a branch or a commit; correct it"):
        fetch_git(remote.url, version, cache)


@pytest.mark.parametrize("command", ["ext::sh -c 'touch {}'", "--upload-pack=touch {}", "foo://host/x", "x::{}"])
def test_addresses_that_run_programs(cache: Cache, tmp_path: Path, command: str) -> None:
    with pytest.raises(UsageError):
        fetch_git(command.format(tmp_path / "ran"), "main", cache)
    assert not (tmp_path / "ran").exists()


def test_an_address_rewritten_to_a_program(cache: Cache, tmp_path: Path, own_configuration: Path) -> None:
    own_configuration.write_text(f'[url "ext::touch {tmp_path}/ran "]\n  insteadOf = https://host/\n')
    with pytest.raises(ProcessFailedError, match=r"https://host/x: cannot be fetched: git failed.*see what it printed"):
        fetch_git("https://host/x", "main", cache)
    assert not (tmp_path / "ran").exists()


# What moves ----------------------------------------------------------------------------------------------------------


def test_a_moved_tag(remote: Remote, cache: Cache) -> None:
    old = remote.commit({"a.c": b"old\n"})
    remote.tag("v1")
    pin = fetch_git(remote.url, "v1", cache)
    new = remote.commit()
    remote.tag("v1")
    assert fetched_pin(remote.url, "v1", cache) == pin, "nobody has asked yet"
    assert fetch_pinned(remote.url, "v1", pin, cache) is False, "the cache has what is locked"
    assert content(git_root(remote.url, pin, cache)) == {"a.c": b"old\n"}
    assert fetch_git(remote.url, "v1", cache).commit == new
    assert content(git_root(remote.url, pin, cache)) == {"a.c": b"old\n"}, "who pinned the old one keeps it"
    assert pin.commit == old


@pytest.mark.parametrize("protocol", ["0", "2"])
def test_a_locked_commit_that_only_the_server_has(
    remote: Remote, cache: Cache, protocol: str, own_configuration: Path
) -> None:
    own_configuration.write_text(f"[protocol]\n  version = {protocol}\n")  # 0 gives tips only: all is fetched then
    old = remote.commit({"a.c": b"old\n"})
    pin = GitPin(old, remote.hash_of(f"{old}^{{tree}}"))
    remote.commit(parent=old)
    assert fetch_pinned(remote.url, "main", pin, cache) is True
    assert content(git_root(remote.url, pin, cache)) == {"a.c": b"old\n"}


def test_a_locked_commit_that_was_pushed_away(remote: Remote, cache: Cache) -> None:
    old = remote.commit({"a.c": b"old\n"})
    pin = fetch_git(remote.url, "main", cache)
    remote.commit()
    remote.forget()
    assert fetch_pinned(remote.url, "main", pin, cache) is False
    shutil.rmtree(cache.root)
    with pytest.raises(UsageError) as error:
        fetch_pinned(remote.url, "main", pin, cache)
    assert told(error) == (
        f"{remote.url}: has no commit {old} any more, at which main is locked (a branch was pushed over, or a "
        "tag moved); run `mlfbuild lock` to take what main is now"
    )


def test_a_lock_that_contradicts_itself(remote: Remote, cache: Cache) -> None:
    old = remote.commit({"a.c": b"old\n"})
    new = remote.commit(parent=old)
    wrong = GitPin(old, remote.hash_of(f"{new}^{{tree}}"))
    reason = f"commit {old} has the tree .*, but {wrong.tree} is locked; restore the lock file from version control"
    for _ in range(2):  # not in the cache yet, and in it
        with pytest.raises(InputFileError, match=reason):
            fetch_pinned(remote.url, "main", wrong, cache)
    with pytest.raises(InputFileError, match=reason):
        git_root(remote.url, wrong, cache)


# The cache -----------------------------------------------------------------------------------------------------------


def test_what_was_not_fetched(remote: Remote, cache: Cache) -> None:
    pin = GitPin(remote.commit(), remote.hash_of("main^{tree}"))
    with pytest.raises(NotFetchedError) as error:
        git_root(remote.url, pin, cache)
    assert (
        told(error) == f"{remote.url}: commit {pin.commit} is not in {cache.root}, or not whole; run `mlfbuild fetch`"
    )
    assert error.value.exit_code == 3 and not cache.root.exists()


def test_a_build_needs_neither_the_repository_nor_git_nor_a_cache_to_write_to(
    remote: Remote, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote.commit()
    pin = fetch_git(remote.url, "main", cache)
    remote.remove()
    monkeypatch.setenv("MLFBUILD_GIT", "/nowhere/git")
    monkeypatch.setattr(Cache, "work", lambda *_: pytest.fail("nothing is to be written"))
    assert content(git_root(remote.url, pin, cache)) == FILES
    assert fetch_pinned(remote.url, "main", pin, cache) is False


def _edit(root: Path) -> None:
    (root / "Source/f.c").write_text("int f(void) { return 2; }\n")


def _list_another(root: Path) -> None:
    path = root.parent / "list"
    path.write_text(path.read_text().replace("Source/f.c", "Source/g.c"))
    (root / "Source/f.c").rename(root / "Source/g.c")


def _link(root: Path) -> None:
    path = root / "Source/f.c"
    path.rename(root.parent / "f.c")
    path.symlink_to(root.parent / "f.c")


DAMAGES: dict[str, Callable[[Path], object]] = {
    "a file that was edited": _edit,
    "a file that is gone": lambda root: (root / "README.md").unlink(),
    "a file that nobody fetched": lambda root: (root / "Source/more.c").touch(),
    "a file that is empty": lambda root: os.truncate(root / "README.md", 0),
    "a link in the place of a file": _link,
    "a list that says something else": _list_another,
    "a list that is cut": lambda root: os.truncate(root.parent / "list", 60),
    "a list that is no text": lambda root: (root.parent / "list").write_bytes(b"\xff\0\n"),
    "no list": lambda root: (root.parent / "list").unlink(),
    "no tree": lambda root: shutil.rmtree(root.parent),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_tree_is_made_again_offline(remote: Remote, cache: Cache, damage: str) -> None:
    remote.commit()
    pin = fetch_git(remote.url, "main", cache)
    remote.remove()
    DAMAGES[damage](git_root(remote.url, pin, cache))
    assert content(git_root(remote.url, pin, cache)) == FILES


def test_builds_that_find_the_same_damage(remote: Remote, cache: Cache) -> None:
    files = {f"{number}.c": b"%d" % number for number in range(300)}
    remote.commit(files)
    pin = fetch_git(remote.url, "main", cache)
    (git_root(remote.url, pin, cache) / "299.c").unlink()

    def build(_: int) -> dict[str, bytes]:
        return content(git_root(remote.url, pin, cache))

    with ThreadPoolExecutor(6) as builds:
        assert list(builds.map(build, range(12))) == [files] * 12
    assert list((cache.root / "tmp").iterdir()) == []


def test_a_damaged_tree_without_git(remote: Remote, cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    remote.commit()
    pin = fetch_git(remote.url, "main", cache)
    _edit(git_root(remote.url, pin, cache))
    monkeypatch.setenv("MLFBUILD_GIT", "/nowhere/git")
    with pytest.raises(MlfError, match=r"/nowhere/git: program not found; install it \(Debian: apt-get install git\)"):
        git_root(remote.url, pin, cache)


def test_permissions_and_times_say_nothing(remote: Remote, cache: Cache) -> None:
    remote.commit({"run.sh": b"true\n"}, modes={"run.sh": "100755"})
    pin = fetch_git(remote.url, "main", cache)
    remote.remove()
    root = git_root(remote.url, pin, cache)
    (root / "run.sh").chmod(0o600)
    os.utime(root / "run.sh", (0, 0))
    (root.parent / "mark").touch()
    assert git_root(remote.url, pin, cache) == root and (root.parent / "mark").exists(), "it was not made again"


def _pack(repository: Path) -> Path:
    (path,) = repository.glob("objects/pack/*.pack")
    path.chmod(0o644)
    return path


HALVES: dict[str, Callable[[Path], object]] = {
    "no objects": lambda repository: shutil.rmtree(repository / "objects"),
    "half a pack": lambda repository: os.truncate(_pack(repository), 100),
    "a pack that is other bytes": lambda repository: _pack(repository).write_bytes(bytes(500)),
    "no pack": lambda repository: _pack(repository).unlink(),
    "a file in its place": lambda repository: (shutil.rmtree(repository), repository.touch()),
    "no repository": shutil.rmtree,
}


@pytest.mark.parametrize("half", HALVES)
def test_a_half_cloned_repository_is_fetched_again(remote: Remote, cache: Cache, half: str) -> None:
    remote.commit()
    pin = fetch_git(remote.url, "main", cache)
    shutil.rmtree(cache.tree(pin.tree))
    HALVES[half](cache.repository(pin.commit))
    with pytest.raises(NotFetchedError, match="or not whole; run `mlfbuild fetch`"):
        git_root(remote.url, pin, cache)
    assert fetch_version(remote.url, "main", cache) == (pin, True)
    remote.remove()
    shutil.rmtree(cache.tree(pin.tree))
    assert content(git_root(remote.url, pin, cache)) == FILES, "the repository is whole again, too"


def test_a_repository_with_one_damaged_file_is_fetched_again(remote: Remote, cache: Cache) -> None:
    files = {f"{name}.c": random.Random(name).randbytes(5000) for name in "abcd"}
    remote.commit(files)
    pin = fetch_git(remote.url, "main", cache)
    shutil.rmtree(cache.tree(pin.tree))
    pack = _pack(cache.repository(pin.commit))
    data = pack.read_bytes()
    at = data.index(files["c.c"][1000:1020])
    pack.write_bytes(data[:at] + bytes(20) + data[at + 20 :])
    with pytest.raises(NotFetchedError, match="or not whole; run `mlfbuild fetch`"):
        git_root(remote.url, pin, cache)
    assert fetch_version(remote.url, "main", cache) == (pin, True)
    assert content(git_root(remote.url, pin, cache)) == files


def test_what_killed_fetches_leave_is_removed(remote: Remote, cache: Cache) -> None:
    commit = remote.commit()
    left = cache.root / "tmp" / f"{commit}.0123456789ab" / "part"
    left.parent.mkdir(parents=True)
    git(left, "init", "-q", "--bare")
    (left / "shallow.lock").touch()
    assert fetched(remote, "main", cache) == FILES
    assert list((cache.root / "tmp").iterdir()) == []


def test_records_that_are_damaged(remote: Remote, cache: Cache) -> None:
    remote.commit()
    pin = fetch_git(remote.url, "main", cache)
    for text in (b"", b"{", b"[]", b'{"tree": 3}', b"\xff", b"[" * 100_000):
        for record in (cache.root / "found").iterdir():
            record.write_bytes(text)
        assert fetched_pin(remote.url, "main", cache) is None
        assert content(git_root(remote.url, pin, cache)) == FILES
        assert fetch_version(remote.url, "main", cache) == (pin, False)


def test_a_record_of_another_tree(remote: Remote, cache: Cache) -> None:
    old = remote.commit({"a.c": b"old\n"})
    fetch_git(remote.url, "main", cache)
    remote.commit(parent=old)
    pin = fetch_git(remote.url, "main", cache)
    cache.remember({"tree": remote.hash_of(f"{old}^{{tree}}")}, "commit", pin.commit)
    assert fetch_version(remote.url, "main", cache) == (pin, False), "the repository knows better"
    assert content(git_root(remote.url, pin, cache)) == FILES


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
}


def test_nothing_changes_what_is_checked_out(
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
    files = {
        **FILES,
        "libs/other": b"0" * 39 + b"1",
        ".gitmodules": b'[submodule "x"]\n path = libs/other\n url = ./x\n',
    }
    remote.commit(files, modes={"libs/other": "160000"})
    root = git_root(remote.url, fetch_git(remote.url, "main", cache), cache)
    assert content(root) == {path: data for path, data in files.items() if path != "libs/other"}
    assert list((root / "libs/other").iterdir()) == []


def test_a_repository_whose_hashes_are_sha256(tmp_path: Path, cache: Cache) -> None:
    remote = Remote(tmp_path / "remote", hashes="sha256")
    assert len(remote.commit({**FILES, "deep/er/f.c": b"f"})) == 64
    assert fetched(remote, "main", cache) == {**FILES, "deep/er/f.c": b"f"}
    assert fetched(remote, remote.hash_of("main"), cache).keys() == {*FILES, "deep/er/f.c"}


def test_a_tree_that_sorts_oddly(remote: Remote, cache: Cache) -> None:
    files = {"a.b": b"1", "a/b": b"2", "a-b/c": b"3", "a0": b"4", "A/x": b"5", "Z": b"6"}
    del files["A/x"]  # one folder with a on some disks
    remote.commit(files)
    assert fetched(remote, "main", cache) == files


# What is refused -----------------------------------------------------------------------------------------------------


def test_links_that_stay_inside_are_links(remote: Remote, cache: Cache) -> None:
    links = {"docs": b"Include", "Source/up.h": b"../Include/lib.h", "loop": b"loop", "later": b"not/there/yet"}
    remote.commit({**FILES, **links}, modes=dict.fromkeys(links, "120000"))
    root = git_root(remote.url, fetch_git(remote.url, "main", cache), cache)
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
    remote.commit({**FILES, **links}, modes=dict.fromkeys(links, "120000"))
    with pytest.raises(InputFileError) as error:
        fetch_git(remote.url, "main", cache)
    assert re.fullmatch(
        rf"{remote.url}: main: '(Source/)?out': is a link that leads out of it, to '.*', refused; choose another "
        "version",
        told(error),
    )
    assert not list(cache.root.glob("trees/*")) and not list(cache.root.glob("git/*"))


def _hostile(remote: Remote, *names: str) -> None:
    blob = remote.blob(b"x")
    remote.commit_tree(tree_object(*(("100644", name, blob) for name in names)))


HOSTILE = {
    "'.git': would be taken for a Git repository": (".git",),
    "'.GIT': would be taken for a Git repository": (".GIT",),
    "'..': leads out of the archive": ("..",),
    r"'a\\\\b': has a name with control characters": ("a\\b",),
    r"'a\\nb': has a name with control characters": ("a\nb",),
    "'README': differs from 'ReadMe' only in case": ("ReadMe", "README"),
    "'x.c': occurs twice": ("x.c", "x.c"),
    "has too long a name": ("x" * 300,),
}


@pytest.mark.parametrize("reason", HOSTILE)
def test_names_that_no_disk_should_see_are_refused(remote: Remote, cache: Cache, reason: str) -> None:
    _hostile(remote, *HOSTILE[reason])
    with pytest.raises(InputFileError, match=rf"main: .*{reason}.*, refused; choose another version"):
        fetch_git(remote.url, "main", cache)
    assert not list(cache.root.glob("trees/*")) and not list(cache.root.glob("git/*"))


def test_a_tree_that_is_not_as_git_writes_one(remote: Remote, cache: Cache) -> None:
    blob = remote.blob(b"x")
    remote.commit_tree(tree_object(("100644", "b", blob), ("100644", "a", blob)))
    with pytest.raises(InputFileError, match="is damaged, or not as Git writes one; choose another version"):
        fetch_git(remote.url, "main", cache)


def test_too_much(remote: Remote, cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    remote.commit()
    monkeypatch.setattr("mlfbuild.requirements.trees.MAX_MEMBERS", 2)
    with pytest.raises(InputFileError, match="has more than 2 files, refused; choose a smaller version"):
        fetch_git(remote.url, "main", cache)
    monkeypatch.setattr("mlfbuild.requirements.git.MAX_SIZE", 30)
    with pytest.raises(InputFileError, match="has more than 0 MiB, refused"):
        fetch_git(remote.url, "main", cache)


def test_a_commit_without_files(remote: Remote, cache: Cache) -> None:
    remote.commit_tree(b"")
    with pytest.raises(InputFileError, match="main: has no files; choose another version"):
        fetch_git(remote.url, "main", cache)


# Surroundings --------------------------------------------------------------------------------------------------------


def test_variables_of_another_repository(remote: Remote, cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    remote.commit()
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"):
        monkeypatch.setenv(name, "/nowhere")
    monkeypatch.setenv("GIT_NAMESPACE", "x")
    monkeypatch.setenv("GIT_TRACE", "1")
    assert fetched(remote, "main", cache) == FILES


def test_a_mirror_of_the_users_configuration(remote: Remote, cache: Cache, own_configuration: Path) -> None:
    remote.commit()
    own_configuration.write_text(f'[url "{remote.folder.parent}/"]\n  insteadOf = https://example.invalid/\n')
    url = "https://example.invalid/remote.git"
    assert content(git_root(url, fetch_git(url, "main", cache), cache)) == FILES


def test_a_server_of_plain_files(remote: Remote, cache: Cache) -> None:
    old = remote.commit({"a.c": b"old\n"})
    new = remote.commit(parent=old)
    remote.tag("v1", annotated=True)
    git(remote.folder, "update-server-info")
    with serving() as source:
        for path in remote.folder.rglob("*"):
            if path.is_file():
                source.files[f"r.git/{path.relative_to(remote.folder)}"] = path.read_bytes()
        url = source.url("r.git")
        # It gives neither single commits nor commits without their history, and all is fetched then.
        assert fetch_git(url, "v1", cache).commit == new
        assert fetch_git(url, old, cache).commit == old
    assert content(git_root(url, GitPin(old, remote.hash_of(f"{old}^{{tree}}")), cache)) == {"a.c": b"old\n"}


def test_no_git(remote: Remote, cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(MlfError) as error:
        fetch_git(remote.url, "main", cache)
    assert error.value.exit_code == 3
    assert told(error) == (
        "git: program not found; install it (Debian: apt-get install git) or set MLFBUILD_GIT to its path"
    )


def test_a_repository_that_is_not_there(cache: Cache, tmp_path: Path) -> None:
    with pytest.raises(ProcessFailedError) as error:
        fetch_git(f"file://{tmp_path}/nothing", "main", cache)
    assert told(error) == (
        f"file://{tmp_path}/nothing: cannot be fetched: git failed with exit status 128; see what it printed, below"
    )
    assert "does not appear to be a git repository" in error.value.output


def test_what_a_server_says_is_no_code_for_terminals(
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
        fetch_git("ssh://host/x", "main", cache)
    assert "\x1b" not in error.value.output and r"\x1b[2Jline 200" in error.value.output
    assert len(error.value.output.splitlines()) == 50


def test_progress_is_told(remote: Remote, cache: Cache) -> None:
    remote.commit({f"{number}.c": bytes([number]) * 9 for number in range(20)})
    seen: list[tuple[str, int, int]] = []
    fetch_git(remote.url, "main", cache, lambda doing, done=0, of=0: seen.append((doing, done, of)))
    assert seen[0] == ("looking", 0, 0) and seen[-1] == ("checking", 0, 0)
    assert ("receiving objects", 22, 22) in seen
