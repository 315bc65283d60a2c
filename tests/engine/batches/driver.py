"""`pennyweight` in a process of its own that kills itself at one step of a batch.

`python driver.py STEP COMMAND…`; the steps are those of `STEPS`.
"""

import os
import signal
import sys

from pennyweight.cli import main
from pennyweight.engine.batches import inbox, outbox

STEPS = {
    "prepared": ("outbox", "add_requests", "after"),
    "ready": ("outbox", "make_ready", "after"),
    "uploaded": ("outbox", "begin_submission", "before"),
    "submitting": ("outbox", "begin_submission", "after"),
    "submitted": ("outbox", "note_handle", "before"),
    "handle": ("outbox", "note_handle", "after"),
    "results begin": ("inbox", "settle_requests", "before"),
    "results": ("inbox", "settle_requests", "after"),
    "results end": ("inbox", "end_batch", "before"),
    "ended": ("inbox", "end_batch", "after"),
}


def killing(module, name, when):
    real = getattr(module, name)

    def replaced(*arguments, **values):
        if when == "after":
            real(*arguments, **values)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(module, name, replaced)


if __name__ == "__main__":
    place, *rest = STEPS[sys.argv[1]]
    inbox.GROUP = outbox.GROUP = 2  # several groups of results and requests
    killing({"outbox": outbox, "inbox": inbox}[place], *rest)
    sys.argv = ["pennyweight", *sys.argv[2:]]
    sys.exit(main())
