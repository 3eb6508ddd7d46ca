"""Results of actions by digest: a folder on this machine, and a server that a team shares.

    cache = open_cache(CacheSettings(remote="https://cache.example/mlf"), notify)
    found = cache.fetch(key)
    if found is None:
        outputs = {"kws.tar": compile_it()}
        cache.store(key, outputs, worker="ci-3", seconds=1.4)

**What.** An *action* is work whose outputs depend only on inputs that its key names: ``key`` is the SHA-256 of all of
them, as 64 hexadecimal digits, and the caller computes it. The *action cache* (``/ac``) maps a key to an *action
result*: the names of the outputs with the digest and size of each. The *content-addressable storage* (``/cas``) has the
contents, *blobs*, by their SHA-256. The terms, the messages and the paths are those of Bazel's Remote Execution API, so
that servers which exist can be used (https://github.com/bazelbuild/remote-apis, version 2).

**Two places, one layout.**

    local     <folder>/ac/ab/abcd...   <folder>/cas/01/0123...      as Bazel's --disk_cache
    remote    GET and PUT <remote>/ac/abcd...  <remote>/cas/0123... as Bazel's, ccache's and sccache's HTTP caches

The local one is asked first. What only the remote one has is written to the local one. An empty blob is stored nowhere:
its digest is its content.

**Trust.** Everything that is read is untrusted. A blob is used only if its SHA-256 and size are those of the action
result, an action result only if it is well-formed, and a local one only if this user, root or the owner of the folder
wrote it. No check can tell whether an action result is the right one for its key: a client that may write ``/ac``
decides which bytes a build gets. ``docs/ci.md`` says what that means for a team.

Rules
  1. Blobs are written before the result that names them, so that a reader who finds a result finds its blobs.
  2. All outputs or none: a result without one of its blobs counts as missing. A damaged local entry is removed.
  3. A cache never fails or hangs a build. If the folder cannot be written, or the server does not answer, ``notify``
     gets one line and the build goes on without it; the server is not asked again by this object.
  4. Times of files are the order of use. A result is never newer than its blobs, so that removing the oldest files
     first removes results before their blobs (``local``).
  5. Credentials come from ``~/.netrc`` or ``$MLFBUILD_CACHE_TOKEN``, never from a project file, and are in no message.

**Where.** ``action_result`` reads and writes the message, ``local`` is the folder, ``upkeep`` keeps it below its limit,
``remote`` is the client of the server, ``results`` joins them, and ``settings`` has what a user can choose.

**What it does not do.** It computes no keys, runs no actions and compares no names of outputs with those that an action
should have: callers do. It does not remove entries from servers, and it has no locks between two machines that compute
the same action.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.cache.results import CachedResult, ResultCache, open_cache, shared_cache
    from mlfbuild.cache.settings import (
        DEFAULT_LIMIT, FOLDER_VARIABLE, CacheSettings, caches_folder, remote_problem, results_folder,
    )
    from mlfbuild.cache.upkeep import CacheContent, CacheFaults, cache_content, clear_cache, verify_cache
else:
    __getattr__ = lazy_attributes(__name__)
