"""A Git repository with reports of made-up images, whose commits have the same ids on every machine."""

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from support.reports import budget, image, kws, others, report

FIRST = 1_750_000_000
"""The time of the first commit; the others follow by a day."""


def git(folder: Path, *words: str, data: bytes = b"") -> str:
    """Run Git in ``folder`` without the configuration of a user."""
    environment = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "HOME": "/nowhere"}
    done = subprocess.run(["git", *words], cwd=folder, input=data, env=environment, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().strip()


def app(size: int, title: str = "app for m4", **about: Any) -> bytes:
    """Return a report of one image with ``size`` bytes of weights."""
    model = kws(size, budget=budget(flash=10_000))
    return json.dumps(report(image(title, [model], others(), sha256=f"{size:064x}", **about))).encode()


class FleetRepo:
    """The repository; its working folder has no files."""

    def __init__(self, folder: Path, hashes: str = "sha1") -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        git(folder, "init", "-q", "-b", "main", "--template=", f"--object-format={hashes}")
        self.commits: list[str] = []

    def commit(
        self, subject: str, files: Mapping[str, bytes | None], *, branch: str = "main", parents: tuple[str, ...] = ()
    ) -> str:
        """Set ``branch`` to a commit that changes ``files``, and removes those that are ``None``; return its id."""
        time = FIRST + 86_400 * len(self.commits)
        text = subject.encode()
        lines = [b"commit refs/heads/%s\ncommitter A <a@example.com> %d +0000\n" % (branch.encode(), time)]
        lines.append(b"data %d\n%s\n" % (len(text), text))
        own = parents or tuple(self.commits[-1:])
        for word, parent in zip(("from", *["merge"] * len(own)), own, strict=False):
            lines.append(f"{word} {parent}\n".encode())
        for path, content in files.items():
            name = json.dumps(path, ensure_ascii=False).encode(errors="surrogateescape")
            if content is None:
                lines.append(b"D %s\n" % name)
            else:
                lines.append(b"M 100644 inline %s\ndata %d\n%s\n" % (name, len(content), content))
        git(self.folder, "fast-import", "--quiet", "--force", data=b"".join(lines))
        self.commits.append(git(self.folder, "rev-parse", branch))
        return self.commits[-1]
