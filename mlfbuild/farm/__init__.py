"""Run tasks on a cluster of Dask: what one machine does in worker processes, many machines do in workers of a farm.

    with open_farm(FarmSettings(scheduler="tcp://farm:8786"), versions) as farm:
        for task, result in farm.run(tasks):
            ...

**What.** A ``FarmTask`` is a function that can be imported, an argument that can be pickled, and files. Dask chooses
the worker, sends what it lacks, and runs the task again elsewhere if the worker dies. Without an address, the cluster
is Dask's ``LocalCluster`` on this machine. No file system is shared: inputs and outputs travel as bytes.

**Rules.**

1. Short tasks share a call (``batch``): as many as take a second, or 8 s on 100 workers, because each call costs
   the scheduler 4 ms. If a worker dies, the tasks of its calls run again.
2. A call carries its files, up to a mebibyte. A larger file is a task of Dask's own whose key is the SHA-256 of its
   content: it is sent to a worker once, and if one is lost with it, the scheduler has it still.
3. A worker checks versions before it unpickles anything: ``versions`` are those of the programs that decide bytes, such
   as mlfbuild and the C compiler. One that has others refuses, and both versions are named. The scheduler unpickles
   tasks too, and needs the same mlfbuild.
4. Hashes are checked on both sides: a worker checks its inputs, this machine the outputs, by the digests that the
   worker returned. Content that does not match is never used; its task runs again, on other workers if there are any.
   A worker that lies in digest and content is outside this check: ``build --recheck`` makes results again here.
5. An error of the task itself (``MlfError``) is its result, and is not tried again. Losses are (``_TRIES`` times each):
   a worker that died or is stopped, which the scheduler notices after its ``worker-ttl``, a scheduler that was
   restarted, a disk that was full. If no scheduler answers, or there is no worker, for as long as Dask tries to connect
   (``distributed.comm.timeouts.connect``), the run ends with an error, and what was yielded is kept.
6. Only so many calls are submitted as keep the workers busy (``_AHEAD``), so that neither this process nor the
   scheduler holds the inputs of all.
7. Boards are resources in Dask's sense: a task that needs ``board:nucleo-f446re`` waits for a worker that was started
   with ``--resources board:nucleo-f446re=1`` and has it free.

**Example.** 800 compilations of 0.1 s on two workers: after the first few, ten share a call, four calls are submitted
at a time, and each archive comes back as bytes with its SHA-256.

**What it does not do.** It does not know what tasks do (``jobs`` and ``usecases`` make them), caches nothing (they ask
``cache`` before and after), and starts no cluster but the local one. Whoever can reach a scheduler can run any code on
its workers: use TLS (Dask's own options) or a network of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.farm.dask_farm import Farm, called, open_farm
    from mlfbuild.farm.paths import own_place, place_in_folder
    from mlfbuild.farm.task import FarmResult, FarmSettings, FarmTask
    from mlfbuild.farm.worker import program_versions, run_here
else:
    __getattr__ = lazy_attributes(__name__)
