"""A client of Dask for the time of a block: of a cluster that exists, or of one that is started on this machine."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import warnings
from collections.abc import Iterator
from multiprocessing import resource_tracker
from typing import Any

from mlfbuild.core import STOP_SIGNALS, ProcessFailedError, lazy_module, shown, signals_masked, stops_held
from mlfbuild.farm.task import FarmSettings

dask, distributed = lazy_module("dask"), lazy_module("distributed")  # importing them takes a second

_LOCAL = {
    # A worker that is stopped sends no heartbeat. Dask's five minutes are for networks, not for processes here.
    "distributed.scheduler.worker-ttl": "60s",
    "distributed.worker.daemon": True,
    "distributed.worker.profile.enabled": False,  # it samples the stack a hundred times a second
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.admin.tick.interval": "1s",  # each process looks whether its event loop is late, not 50 times a second
    "distributed.scheduler.active-memory-manager.start": False,
}
_LOGGERS = ("distributed", "distributed.client", "distributed.gc", "tornado.application", "asyncio")
"""Loggers with handlers or levels of their own, in which Dask prints a line or a traceback for each lost connection."""


@contextlib.contextmanager
def connected_client(settings: FarmSettings) -> Iterator[Any]:
    """Return a client of the cluster of ``settings``, which has a worker; raises as ``open_farm``."""
    # Losses of workers are handled here, versions are checked here, and large models are no mistake.
    for name in _LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with contextlib.ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.filterwarnings("ignore", module=r"distributed\.")
        warnings.filterwarnings("ignore", "Creating scratch directories")  # of a busy disk, in the name of contextlib
        address: Any = settings.scheduler
        if not address:
            stack.enter_context(dask.config.set(_LOCAL))
            address = _local_cluster(settings.workers)
            stack.callback(_close_cluster, address)
        limit = patience()
        try:
            if settings.scheduler:
                asyncio.run(_try_connection(address, limit))
            client = distributed.Client(address, timeout=limit, set_as_default=False)
            stack.callback(_close, client)
            try:
                client.wait_for_workers(1, timeout=limit)
            except distributed.TimeoutError:
                raise without_workers(settings.scheduler) from None
        except (OSError, RuntimeError, TypeError, ValueError, MemoryError, distributed.TimeoutError) as error:
            raise unreachable(settings.scheduler, error) from None
        yield client


def _local_cluster(workers: int) -> Any:
    # Ctrl-C reaches the whole process group: this process handles it and ends the cluster.
    others = [one for one in STOP_SIGNALS if one != signal.SIGTERM]
    try:
        with stops_held():
            with signals_masked("block", others):  # it unblocks them in the thread that starts it: not one of Dask's
                resource_tracker.ensure_running()
            with signals_masked("block", others):
                return distributed.LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    dashboard_address=":0",  # None is the port of another cluster on this machine
                    scheduler_kwargs={"dashboard": False},
                    memory_limit=0,
                    silence_logs=logging.CRITICAL,
                )
    except (OSError, RuntimeError) as error:  # a worker was killed, or there are no more ports, files or memory
        raise ProcessFailedError(
            "farm-not-started",
            place="dask",
            reason=f"no cluster can be started here: {first_line(error)}",
            hint="run the command again, or use `--on here`",
        ) from None


def patience() -> float:
    """Return the seconds to wait for a scheduler, for a worker, and after a restart: Dask's own limit for a connect."""
    seconds: float = dask.utils.parse_timedelta(dask.config.get("distributed.comm.timeouts.connect"))
    return seconds


async def _try_connection(address: str, limit: float) -> None:
    """Connect once before there is a client, which prints a traceback if it could not: without certificates of TLS."""
    options = distributed.Security().get_connection_args("client")
    # Something that listens but is not a scheduler may never answer, or answer in a way that Dask does not understand.
    comm = await asyncio.wait_for(distributed.comm.connect(address, timeout=limit, **options), 2 * limit)
    await comm.close()


def _close(client: Any) -> None:
    with contextlib.suppress(Exception):  # a scheduler that is gone cannot be told, and nothing here needs it any more
        client.close(timeout=patience())


def _close_cluster(cluster: Any) -> None:
    with stops_held(), contextlib.suppress(Exception):  # Dask waits 10 s at the exit for one whose end was interrupted
        cluster.close()


def unreachable(address: str, error: Exception) -> ProcessFailedError:
    """Return the error for an ``address``, empty for this machine, where no scheduler answers because of ``error``."""
    return ProcessFailedError(
        "farm-unreachable",
        place=address or "dask",
        reason=f"no scheduler of Dask answers: {first_line(error)}",
        hint="start it with `dask scheduler`, or correct the address or Dask's options for TLS",
    )


def without_workers(address: str) -> ProcessFailedError:
    """Return the error for the scheduler at ``address``, empty for this machine, that has no worker."""
    return ProcessFailedError(
        "farm-without-workers",
        place=address or "dask",
        reason=f"the scheduler had no worker for {patience():g} s",
        hint=f"start workers with `dask worker {address or 'ADDRESS'}`",
    )


def first_line(error: Exception) -> str:
    """Return the first line of an error of Dask for a message, or the name of its class if it has no text."""
    return shown(str(error).partition("\n")[0] or type(error).__name__)
