"""External libraries that the code of models requires: where they come from, their files, and the lock file.

- A ``Requirement`` (``mlfbuild.library``) is a library that code needs, stated in an archive or recognised by headers.
- A ``Provider`` (``mlfbuild.project``) is an entry of ``dependencies`` in the project file: a folder, a repository, an
  archive on a server, or a CMake package.
- A ``ResolvedLibrary`` (``mlfbuild.library``) is the library with its files, version and licence.

``resolve`` turns requirements and providers into libraries; ``provided_library`` finds the files of one provider on
this machine. For example::

    requirements = model_requirements(module, "kws", Path("kws.tar"))          # cmsis-nn v4.1.0
    libraries = resolve(requirements, project.dependencies.values(), provided_library)
    libraries[0].sources                                                       # ("Source/...c", ...)

Only ``fetch_version``, ``fetch_commit`` and ``fetch_archive`` access the network. They write to the cache (``Cache``),
whose files are hashed before each use. Nothing here compiles a library: ``mlfbuild.jobs`` writes its build files, and
the linker drops the sections that no code uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.requirements.archives import fetch_archive
    from mlfbuild.requirements.bundle import bundled, bundled_libraries, bundled_library
    from mlfbuild.requirements.cache import Cache, default_cache
    from mlfbuild.requirements.command_lines import library_title, lines_to_add
    from mlfbuild.requirements.folder import content_hash, content_sha256, file_lists, folder_library
    from mlfbuild.requirements.git import HEAD, GitPin, fetch_commit, fetch_version, git_root, shown_address
    from mlfbuild.requirements.lock import (
        Lock, LockedModel, LockedProvider, LockedToolchain, check_replaceable, lock_path, read_lock,
    )
    from mlfbuild.requirements.lock_diff import differences, drift, left_over
    from mlfbuild.requirements.provided import pin_of, provided_library, root_of
    from mlfbuild.requirements.requirement_checks import unsound, without_secret
    from mlfbuild.requirements.resolution import model_requirements, requirement_problems, resolve
    from mlfbuild.requirements.versions import is_range, same_version
else:
    __getattr__ = lazy_attributes(__name__)
