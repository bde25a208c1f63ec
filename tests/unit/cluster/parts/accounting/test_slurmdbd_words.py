"""What is said of a slurmdbd that runs and has not reached its database."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from slinky_operator.slurm import naming
from tests.unit.cluster.rollout_stories import settled
from tests.unit.cluster.world import WALL, World

AWAY = (
    "slurmdbd: error: mysql_real_connect failed: 2002 Can't connect to server on 'slurm-database' (115)\n"
    "slurmdbd: error: The database must be up when starting the MYSQL plugin.  Trying again in 5 seconds.\n"
)


def world_with(message: str | None, since: timedelta = timedelta(seconds=1), *, restarts: int = 1) -> World:
    """A world in which slurmdbd runs and does not listen; `message` is what the one before has left."""
    world = settled({"accounting": {"database": {"host": "db.example", "passwordRef": {"name": "secret"}}}})
    last = {} if message is None else {"terminated": {"exitCode": 137, "message": message}}
    pod: dict[str, Any] = {
        "metadata": {
            "name": "slurm-accounting-0",
            "namespace": "here",
            "creationTimestamp": (WALL - timedelta(hours=1)).isoformat(),
        },
        "status": {
            "phase": "Running",
            "containerStatuses": [
                {
                    "name": "slurmdbd",
                    "ready": False,
                    "started": False,
                    "restartCount": restarts,
                    "state": {"running": {"startedAt": (WALL - since).isoformat()}},
                    "lastState": last,
                }
            ],
        },
    }
    world.secrets["secret"] = {"password": b"p"}
    world.daemon_pods = {naming.COMPONENT_ACCOUNTING: (pod,)}
    world.settle()
    return world


@pytest.mark.parametrize(
    ("since", "restarts"), [(1, 1), (90, 1), (3600, 3)], ids=["just restarted", "waiting", "waiting for an hour"]
)
def test_its_words_are_shown_while_it_waits(since: int, restarts: int) -> None:
    world = world_with(AWAY, timedelta(seconds=since), restarts=restarts)
    found = world.condition("AccountingReady")
    assert (found["status"], found["reason"]) == ("False", "DaemonStuck")
    assert "2002 Can't connect to server on 'slurm-database'" in found["message"]
    assert "slurmdbd's pod slurm-accounting-0 runs and does not listen" in found["message"]


def test_what_it_has_said_of_something_else_is_not_taken_for_that() -> None:
    found = world_with("slurmdbd: error: a job of 1970\n").condition("AccountingReady")
    assert "1970" not in found["message"]
    assert found["reason"] == "DaemonsStarting"


def test_one_that_says_nothing_for_a_minute_is_reported_all_the_same() -> None:
    found = world_with(None, timedelta(seconds=90), restarts=0).condition("AccountingReady")
    assert "it has not reached its database, or brings its tables up to date" in found["message"]
