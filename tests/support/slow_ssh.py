"""Replacement for ssh in Git (GIT_SSH_COMMAND): runs the server on this machine and stalls its output.

After MLF_STALL_AFTER bytes, the output stalls and the file "stalled" appears in MLF_STALL_FOLDER. It continues when the
file "go-on" exists.
"""

import os
import shlex
import subprocess
import sys
import threading
import time
from pathlib import Path

folder = Path(os.environ["MLF_STALL_FOLDER"])
limit = int(os.environ["MLF_STALL_AFTER"])
far = subprocess.Popen(shlex.split(sys.argv[-1]), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
assert far.stdin is not None and far.stdout is not None


def forward() -> None:
    while data := os.read(0, 65536):
        far.stdin.write(data)
        far.stdin.flush()
    far.stdin.close()


threading.Thread(target=forward, daemon=True).start()
end = time.monotonic() + 60  # in case "go-on" never appears
sent = 0
while data := os.read(far.stdout.fileno(), 256):
    sent += len(data)
    if sent > limit and not (folder / "go-on").exists():
        (folder / "stalled").touch()
        while not (folder / "go-on").exists() and time.monotonic() < end:
            time.sleep(0.02)
    os.write(1, data)
sys.exit(far.wait())
