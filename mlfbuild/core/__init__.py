"""The basis of all rooms: errors with fields, atomic files, external programs, and text for terminals.

``errors`` has one class for each exit code, and ``mistakes`` reasons to refuse a value whose place is not known yet.
``files`` reads and writes files as a whole and lets one process at a time write, and ``foreign_files`` recognises
models that mlfbuild does not read; ``patterns`` finds files by ``*``. ``processes`` finds and runs programs, ``keeper``
ends them if this process is killed, and ``system_packages`` has the commands that install them; ``git`` reads
repositories, ``signatures`` checks who signed a file, ``threads`` does work beside other work, and ``extras`` are the
Python packages that only some projects need. ``text`` puts untrusted names on one printable line, ``table`` lays out
columns, ``c_words`` are reserved in C, and ``protobuf`` writes integers of binary files. ``keys`` declares the keys of
files, ``package`` reads and hashes mlfbuild's own files, and ``lazy`` makes the faces of rooms, and imports large
libraries when they are first used.

The room reads no models, targets or archives, and imports no other room.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core.lazy import lazy_attributes as lazy_attributes, lazy_module as lazy_module

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.core.c_words import is_reserved_in_c
    from mlfbuild.core.errors import (
        INTERRUPTED_EXIT_CODE, CheckFailedError, ConflictError, Diagnostic, DriftError, InputFileError, LinkFaultsError,
        MlfError, NotFetchedError, OverBudgetError, ProcessFailedError, ProjectFileError, StorageError, TimedOutError,
        ToolNotFoundError, UnsupportedModelError, UsageError,
    )
    from mlfbuild.core.extras import EXTRAS, installed_version, require_extra
    from mlfbuild.core.files import (
        LFS_HINT, SHA256, abandoned, cache_folder, file_sha256, holds, is_ancestor, is_lfs_pointer, locked, make_folder,
        make_once, open_binary, read_bytes, read_regular, real_place, sha256, storage_error, trusted_owners,
        write_atomic, write_if_changed,
    )
    from mlfbuild.core.foreign_files import better_error, in_command, named_foreign, recognised
    from mlfbuild.core.git import COMMIT, UNSHALLOW, GitReader, git_environment
    from mlfbuild.core.keeper import kept
    from mlfbuild.core.markdown import markdown_block, markdown_code, markdown_table
    from mlfbuild.core.mistakes import Mistake, suggestion, unknown
    from mlfbuild.core.package import package_files, package_fingerprint, parsed_toml, table_of_package
    from mlfbuild.core.patterns import folders_of_pattern, is_pattern, matching_files, visible_files, walk_visible
    from mlfbuild.core.processes import (
        LOOK, RUN_BY_HAND, STOP_SIGNALS, OnProgress, disk_problem, end_group, find_tool, no_progress, pipe_of, run,
        run_ninja, running, signals_masked, stops_held, tool_variable, writing_to,
    )
    from mlfbuild.core.protobuf import varint
    from mlfbuild.core.signatures import (
        SIGNATURE_MARK, Signer, Trust, check_signature, check_signed, sign_bytes, signature_path,
    )
    from mlfbuild.core.system_packages import HOST_COMPILER, how_to_install
    from mlfbuild.core.table import text_table
    from mlfbuild.core.templates import text_templates
    from mlfbuild.core.text import change_text, counted, in_quotes, listed, printable, quoted, shown, terminal_text
    from mlfbuild.core.text_cache import cached_text
    from mlfbuild.core.threads import every, in_thread
else:
    __getattr__ = lazy_attributes(__name__)
