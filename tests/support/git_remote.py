"""A bare Git repository on this disk to fetch from; its commits have the same hashes on every machine."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

_WHO = "A Person <person@example.com> 1700000000 +0000"
FILES = {"README.md": b"a library\n", "Include/lib.h": b"int f(void);\n", "Source/f.c": b"int f(void) { return 1; }\n"}


def git(folder: Path, *words: str, data: bytes = b"") -> str:
    """Run Git in the bare repository ``folder`` without any user's configuration."""
    environment = {
        "PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "HOME": "/nowhere",
    }  # fmt: skip
    command = ["git", f"--git-dir={folder}", *words]
    done = subprocess.run(command, input=data, env=environment, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().strip()


class Remote:
    """The repository; each method changes it."""

    def __init__(self, folder: Path, hashes: str = "sha1") -> None:
        self.folder = folder
        git(folder, "init", "-q", "--bare", "--template=", f"--object-format={hashes}")

    @property
    def url(self) -> str:
        return f"file://{self.folder}"

    def commit(
        self,
        files: Mapping[str, bytes] = FILES,
        branch: str = "main",
        *,
        modes: Mapping[str, str] | None = None,
        parent: str = "",
    ) -> str:
        """Set ``branch`` to a commit of ``files`` after ``parent``; ``modes`` is for entries other than plain files."""
        lines = [f"commit refs/heads/{branch}\ncommitter {_WHO}\ndata 1\nc\n".encode()]
        if parent:
            lines.append(f"from {parent}\ndeleteall\n".encode())
        for path, content in files.items():
            mode = (modes or {}).get(path, "100644")
            if mode == "160000":
                lines.append(f"M {mode} {content.decode()} {path}\n".encode())
            else:
                lines.append(f"M {mode} inline {path}\ndata {len(content)}\n".encode() + content + b"\n")
        git(self.folder, "fast-import", "--quiet", "--force", data=b"".join(lines))
        return self.hash_of(f"refs/heads/{branch}")

    def commit_tree(self, tree: bytes, branch: str = "main") -> str:
        """Set ``branch`` to a commit of the tree object ``tree``, which Git itself would not write."""
        name = git(self.folder, "hash-object", "-w", "-t", "tree", "--stdin", "--literally", data=tree)
        commit = f"tree {name}\nauthor {_WHO}\ncommitter {_WHO}\n\nc\n".encode()
        made = git(self.folder, "hash-object", "-w", "-t", "commit", "--stdin", data=commit)
        git(self.folder, "update-ref", f"refs/heads/{branch}", made)
        return made

    def blob(self, content: bytes) -> str:
        return git(self.folder, "hash-object", "-w", "--stdin", data=content)

    def tag(self, name: str, target: str = "main", *, annotated: bool = False) -> None:
        """Set the tag to ``target``, even if it exists."""
        if annotated:
            wanted = self.hash_of(target)
            kind = git(self.folder, "cat-file", "-t", wanted)
            text = f"object {wanted}\ntype {kind}\ntag {name}\ntagger {_WHO}\n\nnote\n"
            target = git(self.folder, "mktag", data=text.encode())
        git(self.folder, "update-ref", f"refs/tags/{name}", self.hash_of(target))

    def forget(self) -> None:
        """Remove unreachable commits, as servers do eventually."""
        git(self.folder, "-c", "gc.reflogExpire=now", "prune", "--expire=now")

    def remove(self) -> None:
        shutil.rmtree(self.folder)

    def hash_of(self, name: str) -> str:
        return git(self.folder, "rev-parse", "--verify", name)


def tree_object(*entries: tuple[str, str, str]) -> bytes:
    """Return a tree object of (mode, name, hash)."""
    return b"".join(f"{mode} {name}".encode() + b"\0" + bytes.fromhex(digest) for mode, name, digest in entries)
