"""Prepare a release: run it as ``make release VERSION=1.2.3``. Nothing is pushed or uploaded.

The checkout must be clean, and CHANGELOG.md must have a section ``## 1.2.3``. All work is done in a clone in
``build/release``, so that a release that fails changes nothing: set the version, date the section, commit, run the
checks (``CHECKS``, by default those of CI), build sdist and wheel twice in different folders and compare the bytes, and
build firmware with the wheel on each Python that is there. Then the commit is merged into the branch and gets an
annotated tag, and ``dist`` gets the files with their SHA-256. The last lines are the commands that publish.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).parents[1]
WORK = ROOT / "build/release"
VERSION = re.compile(r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?")
# Its version is in the wheel, so another one makes other bytes.
HATCHLING = "hatchling==1.33.0"
# Files that name the version of mlfbuild. Lock files and golden files are made again.
NAMING = ("pyproject.toml", "mlfbuild/__init__.py", "cmake/mlfbuild-config-version.cmake")


def main(version: str, checks: str) -> None:
    """Prepare the release of ``version`` after the shell command ``checks`` has succeeded in a clone."""
    branch = check_start(version)
    shutil.rmtree(WORK, ignore_errors=True)
    clone = WORK / "checkout"
    who = [
        f"--config=user.{key}={value}" for key in ("name", "email") if (value := output("git", "config", f"user.{key}"))
    ]
    run("git", "clone", "--quiet", *who, str(ROOT), str(clone))
    # The tests find the data outside the repository beside it.
    if (ROOT.parent / "shared").is_dir():
        (WORK / "shared").symlink_to(ROOT.parent / "shared")
    set_version(clone, version)
    notes = date_section(clone / "CHANGELOG.md", version)
    run("git", "commit", "--quiet", "--all", "--message", f"Release {version}", at=clone)
    say(f"running the checks in {clone}: {checks}")
    run("sh", "-c", checks, at=clone)
    if output("git", "status", "--porcelain", at=clone):
        stop("the checks changed files", "commit what `make generate` writes")
    packages = build(clone)
    run(str(ROOT / "scripts/smoke.sh"), str(packages / f"mlfbuild-{version}-py3-none-any.whl"))

    dist = ROOT / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    shutil.copytree(packages, dist)
    run("git", "fetch", "--quiet", str(clone), "HEAD", at=ROOT)
    run("git", "merge", "--quiet", "--ff-only", "FETCH_HEAD", at=ROOT)
    run("git", "tag", "--annotate", f"v{version}", "--message", f"mlfbuild {version}\n\n{notes}", "--cleanup=verbatim")
    say(f"tagged v{version}; dist has the packages. Nothing is published. To publish:")
    say(f"  git push --atomic origin {branch} v{version}")
    say(f"  then attach dist/* to the release v{version} of the repository: the package is not on PyPI")
    say(f"  python scripts/pins.py v{version} && make generate, and commit: examples then install the tag")
    say(f"To undo: git tag -d v{version} && git reset --hard HEAD~1")


def check_start(version: str) -> str:
    """Return the branch; stop if ``version`` cannot be released from this checkout."""
    if not VERSION.fullmatch(version):
        stop(f"{version!r} is not a version", "run make release VERSION=1.2.3")
    if changed := output("git", "status", "--porcelain"):
        stop(f"the checkout has changes:\n{changed}", "commit or stash them")
    if output("git", "tag", "--list", f"v{version}"):
        stop(f"the tag v{version} exists", "choose the next version")
    if not _section(version).search((ROOT / "CHANGELOG.md").read_text(encoding="utf-8")):
        stop(f"CHANGELOG.md has no section with changes `## {version}`", "rename `## Unreleased`, and commit it")
    return output("git", "symbolic-ref", "--short", "HEAD") or stop("no branch is checked out", "check out one")


def _section(version: str) -> re.Pattern[str]:
    """Return the pattern of the section of ``version``: its head, perhaps a date, and its text."""
    return re.compile(rf"^## {re.escape(version)}(?: \([\d-]+\))?\n(\s*\S.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)


def set_version(clone: Path, version: str) -> None:
    """Write ``version`` to all files of ``clone`` that name the version of mlfbuild."""
    found = re.search(r'^version = "(.+)"', (clone / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    assert found is not None
    old = found.group(1)
    if version == old:
        return
    files = [*(clone / name for name in NAMING), *sorted((clone / "docs").glob("*.md"))]
    for file in files:
        text = file.read_text(encoding="utf-8")
        text = re.sub(rf"(?<![\d.]){re.escape(old)}(?![\d.]*\d)", version, text)
        if file.name == "mlfbuild-config-version.cmake":
            text = re.sub(r"(GREATER_EQUAL) \S+", rf"\1 {'.'.join(version.split('.')[:2])}", text)
        file.write_text(text, encoding="utf-8")
    for project in sorted(clone.glob("examples/*/mlfbuild.lock")):
        run(sys.executable, "-m", "mlfbuild", "lock", "-q", "-C", str(project.parent), at=clone)
    golden = output("git", "grep", "--files-with-matches", "--fixed-strings", old, "--", "tests/golden", at=clone)
    # tests/golden/native/test_hook/... are the files of tests/native/test_hook.py.
    names = re.findall(r"^tests/golden/(.*?/test_\w+)/", golden, re.MULTILINE)
    tests = sorted({f"tests/{name}.py" for name in names if (clone / f"tests/{name}.py").is_file()})
    run(sys.executable, "-m", "pytest", "-q", "-n", "2", "--update-golden", *tests, at=clone)


def date_section(changelog: Path, version: str) -> str:
    """Add today's date to the head of the section of ``version``; return its text."""
    text = changelog.read_text(encoding="utf-8")
    found = _section(version).search(text)
    assert found is not None
    head = f"## {version} ({dt.datetime.now(dt.timezone.utc).date()})\n"
    changelog.write_text(text[: found.start()] + head + text[found.start(1) :], encoding="utf-8")
    return found.group(1).strip() + "\n"


def build(clone: Path) -> Path:
    """Build sdist and wheel of the commit of ``clone`` twice; return the folder with them and their SHA256SUMS.

    The second time, folder and permissions differ, and the wheel is made from the sdist, as ``pip`` does.
    """
    epoch = output("git", "log", "-1", "--format=%ct", at=clone)
    run(sys.executable, "-m", "venv", str(WORK / "venv"))
    python = str(WORK / "venv/bin/python")
    run(python, "-m", "pip", "install", "-qq", HATCHLING)
    environment = {"SOURCE_DATE_EPOCH": epoch}
    first, second, other = WORK / "packages", WORK / "second", WORK / "a-folder-with-another-name"
    # From clones: the checks left files in the folder, which .gitignore names and Git does not know.
    for source in (WORK / "source", other):
        run("git", "clone", "--quiet", str(clone), str(source))
    run(python, "-m", "hatchling", "build", "-d", str(first), at=WORK / "source", **environment)
    run("chmod", "-R", "go-rwx", str(other))
    run(python, "-m", "hatchling", "build", "-t", "sdist", "-d", str(second), at=other, **environment)
    (sdist,) = second.iterdir()
    run("tar", "-xzf", str(sdist), "-C", str(WORK))
    unpacked = WORK / sdist.name.removesuffix(".tar.gz")
    run(python, "-m", "hatchling", "build", "-t", "wheel", "-d", str(second), at=unpacked, **environment)
    sums = [
        "".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in sorted(folder.iterdir()))
        for folder in (first, second)
    ]
    if sums[0] != sums[1]:
        stop(f"two builds differ:\n{sums[0]}{sums[1]}", "make the build independent of folder, time and permissions")
    (first / "SHA256SUMS").write_text(sums[0], encoding="utf-8")
    return first


def run(*command: str, at: Path = ROOT, **environment: str) -> None:
    """Run ``command`` in the folder ``at``; stop if it fails."""
    done = subprocess.run(command, cwd=at, env={**os.environ, **environment}, check=False)
    if done.returncode:
        stop(f"exit status {done.returncode}: {' '.join(command)}", "see its output; this checkout is unchanged")


def output(*command: str, at: Path = ROOT) -> str:
    """Return what ``command`` prints in the folder ``at``, without the last line break."""
    done = subprocess.run(command, cwd=at, capture_output=True, text=True, check=False)
    return done.stdout.rstrip("\n")


def say(text: str) -> None:
    """Print a line."""
    sys.stdout.write(f"release: {text}\n")
    sys.stdout.flush()


def stop(reason: str, hint: str) -> NoReturn:
    """End the program with status 1."""
    sys.exit(f"release: {reason}; {hint}")


if __name__ == "__main__":
    main(*sys.argv[1:])
