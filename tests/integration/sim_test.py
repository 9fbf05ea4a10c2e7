#!/usr/bin/env python3
"""`gpu-scheduler sim` on a terminal: what somebody sees who ends it early."""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from service import BINARY, main, on_terminal, press_ctrl_c, test  # noqa: E402

SEEDS = 1000000


def interrupted(how):
    """Plays seeds on a terminal until the first one is through, then interrupts; (code, text)."""
    command = [BINARY, "sim", "faults", "--seeds", str(SEEDS), "--steps", "20", *how]
    return on_terminal(command, lambda seen: re.search(rb" [1-9]\d*/%d seeds" % SEEDS, seen),
                       press_ctrl_c)


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


if __name__ == "__main__":
    sys.exit(main())
