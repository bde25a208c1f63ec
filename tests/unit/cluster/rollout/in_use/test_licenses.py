"""Licenses stay while pending jobs or reservations ask for them."""

from __future__ import annotations

import pytest

from slinky_api.conditions import Reason
from slinky_operator.cluster.rollout.in_use.removals import JobUse, ReservationUse, Use, keep
from slinky_operator.slurm.conf import ConfFiles, ConfInputs, render
from tests.unit.cluster.rollout_stories import settled

INPUTS = ConfInputs("c", "c-0", "c-0.c")


def files(licenses: str) -> ConfFiles:
    return ConfFiles.read({"slurm.conf": f"MaxNodeCount=5\n{f'Licenses={licenses}' if licenses else ''}\n"})


def asking(text: str, *, holding: bool = False) -> Use:
    licenses = "" if holding else text
    return Use(0.0, "", (JobUse(7, frozenset({"all"}), frozenset(), frozenset(), holding, licenses=licenses),))


@pytest.mark.parametrize(
    ("before", "after", "asked", "stays"),
    [
        ("a:4,b:2", "b:2", "a:1", "b:2,a:4"),
        ("a:4,b:2", "b:2", "b:1", None),
        ("a:4,b:2", "c:1", "x:1|a", "c:1,a:4"),
        ("a:4", "", "a:1", "a:4"),
        # Fewer: only for jobs that ask for more than there will be.
        ("a:4,b", "a:2,b", "a:3", "a:4,b"),
        ("a:4", "a:2", "a:2", None),
        ("a", "", "a@server:1", "a"),
        ("a", "b", "b;a=1", "b,a"),
        # A request that cannot be read counts as one for all.
        ("a", "b", ":::", "b,a"),
        ("a", "b", "b," * 3000, "b,a"),
        ("a:4", "a:5,b", "a:9", None),
        ("a:4", "", "", None),
    ],
)
def test_what_pending_jobs_ask_for_stays(before: str, after: str, asked: str, stays: str | None) -> None:
    kept = keep(files(before), files(after), asking(asked), 1, live=True)
    assert kept.keys.get("licenses") == (None if stays is None else (stays,))
    if stays is not None:
        assert kept.reason is Reason.WAITING_FOR_JOBS
        assert kept.why[0].endswith("stays for job 7")
        assert f"Licenses={stays}\n" in render(kept.over(INPUTS)).files["slurm.conf"]


def test_a_job_that_has_started_keeps_its_license_anyway() -> None:
    assert "licenses" not in keep(files("a:4"), files(""), asking("a:1", holding=True), 1, live=True).keys


def test_a_reservation_keeps_its_licenses() -> None:
    use = Use(0.0, "", (), (ReservationUse("course", "", frozenset(), "a:2"),))
    kept = keep(files("a:4"), files("b:1"), use, 1, live=True)
    assert (kept.keys["licenses"], kept.why) == (("b:1,a:4",), ("license a:4 stays for reservation course",))


def test_without_an_answer_licenses_stay() -> None:
    kept = keep(files("a:4"), files(""), Use(0.0, "", why="no connection"), 1, live=True)
    assert kept.asks
    assert kept.reason is Reason.CONFIG_PENDING
    assert kept.why == ("license a:4 stays until Slurm says who asks for it (no connection)",)


def test_a_license_goes_once_no_pending_job_asks_for_it() -> None:
    world = settled({"extraConf": "Licenses=matlab:4"})
    world.use = asking("matlab:1")
    world.raw["spec"] = {"extraConf": "Licenses=ansys:1"}
    world.settle()
    assert "Licenses=ansys:1,matlab:4\n" in world.slurm_conf
    assert world.condition("ConfigApplied")["reason"] == Reason.WAITING_FOR_JOBS
    assert world.condition("ConfigApplied")["message"] == "license matlab:4 stays for job 7"
    world.use = Use(0.0, "")
    world.now += 10
    world.settle()
    assert "Licenses=ansys:1\n" in world.slurm_conf
    assert world.condition("ConfigApplied")["status"] == "True"
