"""External libraries that the code of models requires: where they come from, their files, and the lock file.

Code that TVM exported calls kernels of CMSIS-NN, or the driver of an Ethos-U, without containing them. If such code is
linked with another release than it was made for, it compiles, links and computes other numbers. This room therefore
never guesses: a library is used only if its version is stated and its files are the ones that were locked.

Data
  - A ``Requirement`` (``mlfbuild.library``) is a library that code needs, stated in an archive or recognised by the
    headers that the code includes. Archives are not trusted: ``unsound`` checks names, versions and addresses.
  - A ``Provider`` (``mlfbuild.project``) is an entry of ``dependencies`` in the project file: a folder (``path``), a
    repository (``git``), an archive on a server (``url``), or a CMake package.
  - A ``GitPin`` is a commit and the content hash of its files, from the lock file.
  - A ``ResolvedLibrary`` (``mlfbuild.library``) is the library with its files, version and licence.

Rules
  1. Requirements and providers are matched by short name. All requirements of one name must agree on version and
     origin, and the provider's version must satisfy them; every one that is not met is reported at once.
  2. A provider takes precedence over a library that an archive bundles.
  3. Only ``fetch_version``, ``fetch_commit`` and ``fetch_archive`` access the network, for ``fetch`` and ``lock``.
  4. What was fetched is in a ``Cache``, shared by all projects. Its files are hashed before each use and used only if
     the hash is that of the lock file (``git``) or of the project file (``url``).
  5. A name from outside is never a path, an option or a program: ``archives`` and ``git`` refuse it, or hash it.

``resolve`` turns requirements and providers into libraries; ``provided_library`` finds the files of one provider on
this machine. For example, ``kws.tar`` was exported by TVM 0.14, whose CMSIS-NN is v4.1.0, and the project file has
``cmsis-nn: {git: "https://github.com/ARM-software/CMSIS-NN", version: v4.1.0}``::

    requirements = model_requirements(module, "kws", Path("kws.tar"))          # cmsis-nn v4.1.0
    libraries = resolve(requirements, project.dependencies.values(), provided_library)
    libraries[0].sources                                                       # ("Source/...c", ...)

With ``version: v7.0.0`` instead, ``resolve`` raises ``ProjectFileError`` with ``provider-other-version``.

Nothing here compiles a library: ``mlfbuild.jobs`` writes its build files, and the linker drops the sections that no
code uses. Nothing here chooses a newer version by itself, and there are no dependencies of dependencies.
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
    from mlfbuild.requirements.git import HEAD, GitPin, fetch_commit, fetch_version, git_root
    from mlfbuild.requirements.lock import (
        Lock, LockedModel, LockedProvider, LockedToolchain, check_replaceable, lock_path, read_lock,
    )
    from mlfbuild.requirements.lock_diff import differences, drift, left_over
    from mlfbuild.requirements.requirement_checks import unsound, without_secret
    from mlfbuild.requirements.resolution import (
        model_requirements, pin_of, provided_library, requirement_problems, resolve, root_of,
    )
    from mlfbuild.requirements.versions import is_range, same_version
else:
    __getattr__ = lazy_attributes(__name__)
