"""The story of a round is in the order of time, with what was wrong and the way to play it again."""

from __future__ import annotations

from tests.campaign.plan import make
from tests.campaign.story import told
from tests.campaign.verdict import judge
from tests.campaign.witness import Asked, Happened, Line, Record, Seen


def test_a_person_reads_what_happened_when_and_what_was_wrong() -> None:
    plan = make(4, 60).only({1, 2})
    seen = Seen(
        asked=(Asked("m-1", "long", 1001.0, "7"),),
        lines={"m-1": (Line("start", "7", "-", 1, "a-0", 1002.0),)},
        records=(Record("7", "m-1", "NODE_FAIL", "0:0", 1002, 1009, "a-0"),),
        happened=(
            Happened(1000.0, 1000.1, "scale", "nodeset.slinky.slurm.net/a scaled", 2),
            Happened(1004.0, 1010.0, "operator frozen", "SIGSTOP to slurm-operator [17]", 3),
        ),
    )
    text = told(plan, seen, judge(seen))
    wanted = [
        "Seed 4, 60 s, begun at 00:16:40 UTC",
        "    0.0 s  [2] scale: nodeset.slinky.slurm.net/a scaled",
        "    2.0 s    job 7 starts on a-0 (attempt 1): m-1",
        "    2.0 s  !! killed: long job 7 m-1: it started and did not end: start on a-0 as attempt 1 at 1002.0",
        "    4.0 s  [3] operator frozen for 6.0 s: SIGSTOP to slurm-operator [17]",
        "    9.0 s  !! recorded otherwise: long job 7 m-1: 7 is NODE_FAIL 0:0 on a-0",
    ]
    assert text.splitlines()[: len(wanted)] == wanted
    assert text.splitlines()[-1] == "Again: python -m tests.campaign --seed 4 --seconds 60 --only 1,2"
