"""The basis of all rooms: errors with fields, atomic files, external programs, and text for terminals.

``errors`` has one class for each exit code; ``files`` reads and writes files as a whole; ``extras`` are the Python
packages that only some projects need; ``locks`` lets one process at
a time write; ``processes`` finds and runs programs; ``system_packages`` has the commands that install them; ``text``
puts untrusted names on one printable line; ``c_words`` are reserved in C; ``table`` lays out columns; ``package``
hashes mlfbuild's own files; ``lazy`` makes the faces of rooms. The room does not know models, targets or archives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core.lazy import lazy_attributes as lazy_attributes

if TYPE_CHECKING:
    from mlfbuild.core.c_words import is_reserved_in_c as is_reserved_in_c
    from mlfbuild.core.errors import (
        INTERRUPTED_EXIT_CODE as INTERRUPTED_EXIT_CODE,
        CheckFailedError as CheckFailedError,
        ConflictError as ConflictError,
        Diagnostic as Diagnostic,
        DriftError as DriftError,
        InputFileError as InputFileError,
        LinkFaultsError as LinkFaultsError,
        MlfError as MlfError,
        NotFetchedError as NotFetchedError,
        OverBudgetError as OverBudgetError,
        ProcessFailedError as ProcessFailedError,
        ProjectFileError as ProjectFileError,
        StorageError as StorageError,
        TimedOutError as TimedOutError,
        ToolNotFoundError as ToolNotFoundError,
        UnsupportedModelError as UnsupportedModelError,
        UsageError as UsageError,
    )
    from mlfbuild.core.extras import require_extra as require_extra
    from mlfbuild.core.files import (
        LFS_HINT as LFS_HINT,
        abandoned as abandoned,
        cache_folder as cache_folder,
        file_sha256 as file_sha256,
        holds as holds,
        is_lfs_pointer as is_lfs_pointer,
        make_folder as make_folder,
        make_once as make_once,
        open_binary as open_binary,
        read_bytes as read_bytes,
        real_place as real_place,
        sha256 as sha256,
        storage_error as storage_error,
        trusted_owners as trusted_owners,
        write_atomic as write_atomic,
        write_if_changed as write_if_changed,
    )
    from mlfbuild.core.foreign_files import (
        better_error as better_error,
        in_command as in_command,
        named_foreign as named_foreign,
        recognised as recognised,
    )
    from mlfbuild.core.keeper import kept as kept
    from mlfbuild.core.locks import is_ancestor as is_ancestor, locked as locked
    from mlfbuild.core.mistakes import (
        Mistake as Mistake,
        in_quotes as in_quotes,
        suggestion as suggestion,
        unknown as unknown,
    )
    from mlfbuild.core.package import (
        package_files as package_files,
        package_fingerprint as package_fingerprint,
    )
    from mlfbuild.core.processes import (
        LOOK as LOOK,
        RUN_BY_HAND as RUN_BY_HAND,
        STOP_SIGNALS as STOP_SIGNALS,
        Tell as Tell,
        disk_problem as disk_problem,
        end_group as end_group,
        find_tool as find_tool,
        run as run,
        run_ninja as run_ninja,
        running as running,
        signals_masked as signals_masked,
        stops_held as stops_held,
        tell_nobody as tell_nobody,
        tool_variable as tool_variable,
        writing_to as writing_to,
    )
    from mlfbuild.core.system_packages import HOST_COMPILER as HOST_COMPILER, how_to_install as how_to_install
    from mlfbuild.core.table import text_table as text_table
    from mlfbuild.core.text import (
        counted as counted,
        listed as listed,
        printable as printable,
        quoted as quoted,
        shown as shown,
        terminal_text as terminal_text,
    )
else:
    __getattr__ = lazy_attributes(__name__)
