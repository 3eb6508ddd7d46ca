"""Templates of users: a folder, or a Git repository, with ``mlfbuild-template.yml`` and the files of a project.

    --template DIR or URL[@VERSION] -> folder -> every mistake at once, or its files -> overlay on those of all projects

Files that end in ``.jinja`` are rendered and lose this suffix; all others are copied. What a stranger can make
expensive, expressions of jinja and regular expressions, is computed ``within_limits``.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from mlfbuild import __version__
from mlfbuild.core import (
    Diagnostic,
    InputFileError,
    Mistake,
    ProjectFileError,
    UsageError,
    listed,
    printable,
    read_bytes,
    suggestion,
)
from mlfbuild.project import TEMPLATE_FILE, TemplateKeys, git_problem, load_template, template_error
from mlfbuild.requirements import HEAD, default_cache, fetch_version, git_root, without_secret
from mlfbuild.usecases.init.rendering import rendered, unsound, within_limits
from mlfbuild.usecases.init.templates import TEMPLATES

SUFFIX = ".jinja"
VALUES = frozenset(
    {
        "board", "compiler", "cpu", "cpu_flags", "emulator", "headers", "model", "modules", "project", "source",
        "target", "vectors",
    }
)  # fmt: skip
"""Names of the values that every template has."""
# Far above any project. The bytes are those of all files together.
_MOST_FILES = 2000
_MOST_BYTES = 64 << 20
# As Git recognizes addresses: a helper (``ext::``), a scheme, and ``user@host:path``. The last one requires the user,
# as a drive of Windows would also match ``host:path``.
_REPOSITORY = re.compile(r"[a-z+]+::|[a-z+]+://|[^/\\@]+@[^/\\:]+:", re.IGNORECASE)


@dataclass(frozen=True)
class UserTemplate:
    """A template without mistakes."""

    title: str
    """The folder or address, for messages."""
    folder: Path
    keys: TemplateKeys
    files: Mapping[str, Path]
    """By their path in the project."""
    note: str = ""

    def overlay(self, files: Mapping[str, bytes], values: Mapping[str, Any]) -> dict[str, bytes]:
        """Return ``files`` of every project without those that are omitted, and with those of this template.

        Raises ``ProjectFileError`` for a file that cannot be rendered, or that is omitted and does not exist.
        """
        for number, name in enumerate(self.keys.omit):
            if name not in files:
                reason = f"the project has no file {name}{suggestion(name, files)}"
                mistake = Mistake("omitted-file-unknown", reason=reason, hint=f"its files are {', '.join(files)}")
                raise template_error(self.folder / TEMPLATE_FILE, self.keys, ("omit", number), mistake)
        kept = {name: data for name, data in files.items() if name not in self.keys.omit}
        self._check_folders([*kept, *self.files])
        return kept | {name: self._content(path, values) for name, path in self.files.items()}

    def _check_folders(self, names: Iterable[str]) -> None:
        """Raise ``ProjectFileError`` if a file of the project has the name of a folder of it."""
        # Over both sets of files, as a template may add ``src`` where every project has a folder of that name.
        folders = {str(parent): name for name in names for parent in PurePosixPath(name).parents}
        found = next((name for name in names if name in folders), None)
        if found is not None:
            reason = f"{printable(found)} cannot be a file and a folder, of {printable(folders[found])}"
            raise ProjectFileError.of("template-name-refused", self.title, reason=reason, hint="rename one")

    def executables(self) -> list[str]:
        """Return the files that may be executed."""
        return [name for name, path in self.files.items() if path.stat().st_mode & stat.S_IXUSR]

    def _content(self, path: Path, values: Mapping[str, Any]) -> bytes:
        data = read_bytes(path, "template file")
        if path.suffix != SUFFIX:
            return data
        place = f"{self.title}/{path.relative_to(self.folder).as_posix()}"
        return within_limits(place, rendered, data.decode(), place, values)


def user_template(name: str) -> UserTemplate | None:
    """Return the template at the folder or address ``name``, ``None`` if it is one of mlfbuild.

    An address is fetched. Raises ``UsageError`` if there is none, ``ProjectFileError`` with every mistake in it, and as
    ``fetch_version``.
    """
    if name in TEMPLATES or not (_REPOSITORY.match(name) or re.search(r"[/\\.]", name) or Path(name).is_dir()):
        return None
    if not _REPOSITORY.match(name):
        return read_template(Path(name), name.rstrip("/\\"))
    url, version = _address(name)
    problem = git_problem(url)
    if problem is not None:
        raise UsageError("git-address-invalid", place="--template", reason=problem.reason, hint=problem.hint)
    cache = default_cache()
    pin, _ = fetch_version(url, version, cache)
    note = f"the template is {without_secret(url)} at commit {pin.commit}"
    return read_template(git_root(url, pin, cache), without_secret(url), note)


def _address(name: str) -> tuple[str, str]:
    """Return address and version of ``url@version``; a user name is before a slash or a colon."""
    head, at, tail = name.rpartition("@")
    return (head, tail) if at and not re.search(r"[/:]", tail.partition("/")[0]) and _ends(head) else (name, HEAD)


def _ends(head: str) -> bool:
    """Return whether ``head`` is an address with a path, so that what follows is not a host."""
    return "/" in head.partition("://")[2] if "://" in head else ":" in head


def read_template(folder: Path, title: str, note: str = "") -> UserTemplate:
    """Read the template in ``folder``; raises ``ProjectFileError`` with every mistake in its files."""
    path = folder / TEMPLATE_FILE
    if not path.is_file():
        raise UsageError(
            "template-without-file",
            place=title,
            reason=f"there is no {TEMPLATE_FILE}" if folder.is_dir() else "there is no such folder",
            hint=f"choose {', '.join(TEMPLATES)}, or a folder or repository with {TEMPLATE_FILE}",
        )
    problems: list[str | Diagnostic] = []
    keys = None
    try:
        keys = within_limits(f"{title}/{TEMPLATE_FILE}", load_template, path, VALUES)
        _check_release(path, keys)
    except ProjectFileError as error:
        problems += error.problems
    files: dict[str, Path] = {}
    known = None if keys is None else VALUES | keys.variables.keys()
    problems += list(_collect(folder, title, files, known))
    if keys is None or problems:
        raise ProjectFileError(problems)
    return UserTemplate(title, folder, keys, files, note)


def _check_release(path: Path, keys: TemplateKeys) -> None:
    # Numbers, because as text 0.10 is less than 0.9.
    wanted, here = ([int(part) for part in re.findall(r"\d+", text)[:3]] for text in (keys.mlfbuild, __version__))
    if wanted > here:
        reason = f"the template works with mlfbuild {keys.mlfbuild} or later, and this is {__version__}"
        mistake = Mistake("template-needs-newer", reason=reason, hint="install a newer mlfbuild")
        raise template_error(path, keys, ("mlfbuild",), mistake)


def _collect(folder: Path, title: str, files: dict[str, Path], known: frozenset[str] | None) -> Iterator[Diagnostic]:
    """Add the files of ``folder`` to ``files``; yield the mistakes in them, of names only if they are ``known``."""
    size = 0
    names: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        place = f"{title}/{printable(inside.as_posix())}"
        # The repository of the template is not part of the project that is made from it.
        if inside.parts[0] == ".git" or inside.as_posix() == TEMPLATE_FILE:
            continue
        # A link could bring any file of this machine into the project, which may then be published.
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            yield Diagnostic("template-not-a-file", place, reason="not a file or folder", hint="put a copy of it there")
            continue
        name = inside.as_posix() if path.is_dir() else inside.as_posix().removesuffix(SUFFIX)
        if not all(map(_is_accepted, name.split("/"))):
            reason = "a project cannot get a file of this name"
            yield Diagnostic("template-name-refused", place, reason=reason, hint="rename or remove it")
            continue
        if path.is_dir():
            continue
        other = names.setdefault(name.casefold(), name)  # some file systems do not distinguish case
        if other != name or name in files:
            reason = f"the template already has the file {other}"
            yield Diagnostic("template-name-twice", place, reason=reason, hint="remove one of them")
        files[name] = path
        size += path.stat().st_size
        if len(files) > _MOST_FILES or size > _MOST_BYTES:
            reason = f"the template has more than {_MOST_FILES} files or {_MOST_BYTES >> 20} MiB"
            yield Diagnostic("template-too-large", title, reason=reason, hint="keep only the files of a project in it")
            return
        if path.suffix == SUFFIX:
            yield from _text_problems(path, place, known)


def _is_accepted(part: str) -> bool:
    """Return whether a file or folder of a project may be called ``part``."""
    # Files in ``.git`` or ``.hg`` configure hooks, which other programs run; on file systems that ignore case, ``.GIT``
    # is the same folder.
    return part.lower() not in {"", ".", "..", ".git", ".hg", ".svn"} and part.isprintable()


def _text_problems(path: Path, place: str, known: frozenset[str] | None) -> Iterator[Diagnostic]:
    try:
        text = read_bytes(path, "template file").decode()
    except UnicodeDecodeError:
        hint = f"save it as UTF-8, or remove {SUFFIX} from its name to copy it"
        yield Diagnostic("template-not-utf8", place, reason="not UTF-8 text", hint=hint)
        return
    except InputFileError as error:
        yield error.diagnostic()
        return
    found = within_limits(place, unsound, text, place, known or ())
    yield from (each for each in found if known is not None or each.code != "template-unknown-name")


def chosen_values(template: UserTemplate, given: Mapping[str, str]) -> dict[str, str]:
    """Return the value of each variable of ``template``: that of ``given``, or its default.

    Raises ``UsageError`` for a variable that does not exist, a value that it cannot have, and missing values.
    """
    variables = template.keys.variables
    for name, value in given.items():
        if name not in variables:
            reason = f"the template has no such variable{suggestion(name, variables)}"
            hint = f"its variables are {listed(list(variables)) or 'none'}"
            raise UsageError("unknown-template-variable", place=f"--set {printable(name)}", reason=reason, hint=hint)
        problem = within_limits(f"--set {name}", variables[name].problem, value)
        if problem is not None:
            code, reason, hint = "template-value-invalid", problem.reason, problem.hint
            raise UsageError(code, place=f"--set {name}", reason=reason, hint=hint or "correct the value")
    missing = [name for name, keys in variables.items() if name not in given and keys.default is None]
    if missing:
        about = [f"{name} ({variables[name].help})" if variables[name].help else name for name in missing]
        raise UsageError(
            "template-variable-missing",
            place=template.title,
            reason=f"variables without a default: {', '.join(about)}",
            hint=f"add {' '.join(f'--set {name}=VALUE' for name in missing)}",
        )
    defaults = {name: keys.default for name, keys in variables.items() if keys.default is not None}
    return {**defaults, **given}
