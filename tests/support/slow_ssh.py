"""What Git runs in the place of ssh (GIT_SSH_COMMAND): the far end on this machine, whose answer stops in the middle.

MLF_STALL_AFTER is the number of bytes after which nothing comes any more. A file "stalled" in MLF_STALL_FOLDER appears
then, and the rest comes when there is a file "go-on".
"""

from __future__ import annotations

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
end = time.monotonic() + 60  # for whoever waits in vain
sent = 0
while data := os.read(far.stdout.fileno(), 256):
    sent += len(data)
    if sent > limit and not (folder / "go-on").exists():
        (folder / "stalled").touch()
        while not (folder / "go-on").exists() and time.monotonic() < end:
            time.sleep(0.02)
    os.write(1, data)
sys.exit(far.wait())
