"""`pennyweight` in a process of its own that kills itself at one step of a batch.

`python driver.py STEP COMMAND…`; the steps are those of `STEPS`.
"""

import os
import signal
import sys

from pennyweight.cli import main
from pennyweight.engine.batches import inbox, outbox

STEPS = {
    "prepared": ("outbox", "add_requests", None, "after"),
    "ready": ("outbox", "set_batch", "ready", "after"),
    "uploaded": ("outbox", "begin_submission", None, "before"),
    "submitting": ("outbox", "begin_submission", None, "after"),
    "submitted": ("outbox", "set_batch", "out", "before"),
    "handle": ("outbox", "set_batch", "out", "after"),
    "results begin": ("inbox", "settle_requests", None, "before"),
    "results": ("inbox", "settle_requests", None, "after"),
    "results end": ("inbox", "set_batch", "ended", "before"),
    "ended": ("inbox", "set_batch", "ended", "after"),
}


def killing(module, name, state, when):
    real = getattr(module, name)

    def replaced(*arguments, **values):
        meant = state is None or values.get("state") == state
        if meant and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        real(*arguments, **values)
        if meant:
            os.kill(os.getpid(), signal.SIGKILL)

    setattr(module, name, replaced)


if __name__ == "__main__":
    place, *rest = STEPS[sys.argv[1]]
    inbox.GROUP = 2  # several groups of results
    killing({"outbox": outbox, "inbox": inbox}[place], *rest)
    sys.argv = ["pennyweight", *sys.argv[2:]]
    sys.exit(main())
