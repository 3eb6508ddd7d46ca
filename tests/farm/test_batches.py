"""Short tasks that share a call, and a process that stays connected: what a loss costs, and what it does not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mlfbuild.farm import FarmTask
from mlfbuild.farm.batch import Pace, batches
from support.dask_cluster import IMPATIENT, DaskCluster, dask_cluster

_TASKS = """\
import sys
from pathlib import Path
from mlfbuild.farm import FarmSettings, FarmTask, open_farm, program_versions

calls = [("builtins:dict", {"n": b"%d" % n}) for n in range(99)] + [("os:system", "sleep 0.5; kill -9 $PPID")]
tasks = [FarmTask(str(n), f"{n}", *call, Path.cwd(), []) for n, call in enumerate(calls)]
with open_farm(FarmSettings(sys.argv[1]), program_versions([])) as farm:
    for task, result in farm.run(tasks):
        print(task.title, getattr(result, "code", "") or result.outputs["n"].decode())
"""
_CALLS = """\
import sys
from pathlib import Path
from mlfbuild.core import MlfError
from mlfbuild.farm import FarmSettings, FarmTask, called

for line in sys.stdin:
    try:
        task = FarmTask("0", "a task", "builtins:dict", {"line": line.encode()}, Path(), [])
        print(called(FarmSettings(sys.argv[1]), task).outputs["line"].decode(), end="", flush=True)
    except MlfError as error:
        print(error.code, flush=True)
"""


def test_short_tasks_share_a_call() -> None:
    task = FarmTask("0", "a task", "builtins:dict", {}, Path(), [])
    board = FarmTask("1", "a run", "builtins:dict", {}, Path(), [], {"board:m4": 1})
    pace = Pace()
    assert pace.most(2) == 1  # nothing is known yet
    pace.learn(0.1)
    assert (pace.most(2), pace.most(1000)) == (10, 32)
    assert [len(batch.tasks) for batch in batches([task] * 12, 4, 5)] == [3, 3, 3, 3]
    assert [len(batch.tasks) for batch in batches([task] * 12 + [board], 1, 5)] == [1, 5, 5, 2]
    pace.learn(90)
    assert pace.most(2) == 1


def _start(cluster: DaskCluster, code: str) -> subprocess.Popen[str]:
    environment = {**os.environ, **IMPATIENT}
    command = [sys.executable, "-c", code, cluster.address]
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.mark.sweep
def test_a_task_that_kills_its_worker_takes_no_other_with_it(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    with dask_cluster(tmp_path, DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="0") as cluster:
        cluster.scheduler()
        cluster.worker("a", "--nanny")
        out, _ = _start(cluster, _TASKS).communicate()
    found = dict(line.split() for line in out.splitlines())
    assert found == {str(n): "farm-task-lost" if n == 99 else str(n) for n in range(100)}


@pytest.mark.sweep
def test_a_lost_connection_is_made_again(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    with dask_cluster(tmp_path) as cluster:
        port = int(cluster.scheduler().rpartition(":")[2])
        cluster.worker("a")
        with _start(cluster, _CALLS) as process:
            assert process.stdin and process.stdout

            def answer(word: str) -> str:
                print(word, file=process.stdin, flush=True)
                return process.stdout.readline().strip() if process.stdout else ""

            assert answer("one") == "one"
            cluster.kill("scheduler")
            assert answer("two") == "farm-unreachable"
            cluster.scheduler(port)
            cluster.worker("b")
            assert answer("three") == "three"
            process.stdin.close()
