#!/usr/bin/env python3
"""`gpu-scheduler sim` on a terminal: what somebody sees who ends it early."""

import os
import pathlib
import re
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from service import BINARY, main, on_terminal, press_ctrl_c, test  # noqa: E402

SEEDS = 1000000


def interrupted(how, leave=press_ctrl_c, steps=20):
    """Plays seeds on a terminal until the first one is through, then interrupts; (code, text)."""
    command = [BINARY, "sim", "faults", "--seeds", str(SEEDS), "--steps", str(steps), *how]
    return on_terminal(command, lambda seen: re.search(rb" [1-9]\d*/%d seeds" % SEEDS, seen),
                       leave)


def children(pid):
    return [int(child) for child in
            pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def kill_one_seed(pid):
    """With one seed at a time, the next one plays only when the loss of this one is noted."""
    end = time.monotonic() + 30
    killed = 0
    while time.monotonic() < end:
        for child in children(pid):
            if killed and child != killed:
                return
            if not killed:
                os.kill(child, signal.SIGKILL)
                killed = child
    raise AssertionError(f"no seed came after {killed}")


@test
def ctrl_c_tells_how_far_it_came():
    code, text = interrupted([])
    assert code == 130, (code, text[-300:])
    played = re.search(rf"interrupted: (\d+) of {SEEDS} seeds were played", text)
    assert played and int(played[1]) > 0, text[-300:]
    assert re.search(rf"^{played[1]} seeds? with \d+ actions.*: no finding", text, re.M), text[-300:]


@test
def ctrl_c_leaves_one_json_document_that_says_so():
    code, text = interrupted(["--json"])
    assert code == 130, (code, text[-300:])
    assert '"complete": false' in text and '"findings": 0' in text, text[-300:]


@test
def after_ctrl_c_nothing_is_shrunk():
    def leave(terminal, pid):
        kill_one_seed(pid)
        press_ctrl_c(terminal, pid)

    code, text = interrupted(["--shrink", "--jobs", "1"], leave, steps=2000)
    assert code == 1 and "died" in text, (code, text[-300:])
    assert "interrupted" in text and "from its list of actions" not in text, text[-300:]


if __name__ == "__main__":
    sys.exit(main())
