"""`explain`: what stands behind Slurm's reason is looked up, whatever the reason, and is never a flood."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from kubectl_slurm.facts.objects import NodeSetFacts, PodFacts
from kubectl_slurm.facts.pictures import SlurmPicture
from kubectl_slurm.rules.jobs import job as job_rules
from kubectl_slurm.rules.jobs import limits, near_misses
from kubectl_slurm.rules.nodes import node as node_rules
from slurm_client.cli.reasons import _WORDS
from slurm_client.models import INFINITE, License, Reservation
from slurm_client.models.database.accounts import Association
from slurm_client.models.database.limits import AssociationLimits, QosLimits
from slurm_client.models.database.qos import Qos
from slurm_client.notation.tres import Tres
from slurm_client.testing import FakeSlurmrestd
from tests.unit.kubectl_slurm.conftest import Run
from tests.unit.kubectl_slurm.samples import NOW, PICTURE, before, job, node, partition
from tests.unit.kubectl_slurm.screens import text

NODES = (node("cpu-0"), node("cpu-1"))


def explained(one: Any, slurm: SlurmPicture | None = None, **more: Any) -> str:
    seen = replace(slurm or SlurmPicture(now=NOW, nodes=NODES, partitions=(partition(),)), **more)
    seen = replace(seen, jobs=(*seen.jobs, one))
    return text(job_rules.screen(job_rules.find(str(one.id), seen.jobs), seen))


def test_a_node_that_misses_by_one_thing_is_named_with_numbers() -> None:
    nodes = (
        node("small", real_memory_mib=16384),
        node("busy", "MIXED", alloc_memory_mib=60000),
        node("busier", "MIXED", alloc_memory_mib=65000),
        node("both", "MIXED", alloc_memory_mib=65000, alloc_cpus=16),
        node("away", "IDLE+DRAIN", reason="new fans", reason_set_by="root"),
    )
    shown = explained(job(1, state_reason="Resources", memory_per_node_mib=32768), nodes=nodes)
    assert "Of 5 nodes in partition all the job needs 1: 0 have room now, 4 might later, 1 never." in shown
    assert "busy: 5.4 GiB of 64 GiB free, the job needs 32 GiB" in shown
    assert "small: has 16 GiB, the job needs 32 GiB" in shown
    assert "away: IDLE+DRAIN, set by root (new fans)" in shown
    assert "both" not in shown


@pytest.mark.parametrize(
    ("asks", "has", "thing"),
    [
        ({"cpus": 32}, {}, "CPUs"),
        ({"features": "a100&nvlink"}, {"features": ("a100",), "active_features": ("a100",)}, "features"),
        ({"tres_per_node": "gres/gpu:2"}, {"gres": "gpu:a100:1"}, "gpu"),
        ({"tres_per_job": "gres/gpu:a100:4", "node_count": 2}, {"gres": "gpu:a100:1"}, "gpu:a100"),
        ({"excluded_nodes": "n-[0-1]"}, {}, "excluded"),
        ({"required_nodes": "other"}, {}, "not named"),
        ({"shared": ("none",)}, {"alloc_cpus": 1}, "other jobs"),
        ({}, {"reservation": "maintenance"}, "a reservation"),
        ({"memory_per_cpu_mib": 65536, "cpus": 2}, {}, "memory"),
    ],
)
def test_each_thing_that_a_node_may_lack(asks: dict[str, Any], has: dict[str, Any], thing: str) -> None:
    slurm = SlurmPicture(now=NOW, nodes=(node("n-0", **has),))
    (found,) = near_misses.examine(job(1, **asks), slurm)
    assert [miss.thing for miss in found.misses] == [thing]
    (fits,) = near_misses.examine(job(1), replace(slurm, nodes=(node("n-0"),)))
    assert fits.misses == ()


def test_nothing_is_said_of_constraints_about_several_nodes() -> None:
    (found,) = near_misses.examine(job(1, features="[rack1*2&rack2*2]"), SlurmPicture(now=NOW, nodes=NODES[:1]))
    assert found.misses == ()


ASSOCIATIONS = (
    Association(account="root"),
    Association(account="science", parent_account="root", limits=AssociationLimits(group_tres=Tres.parse("cpu=24"))),
    Association(account="physics", parent_account="science"),
    Association(account="biology", parent_account="science"),
    Association(account="physics", user="alice", limits=AssociationLimits(max_jobs=2)),
)
RUNNING = (
    job(11, "RUNNING", cpus=12, user="bob", account="biology", nodes=("cpu-0",)),
    job(12, "RUNNING", cpus=8, nodes=("cpu-1",)),
    job(13, "RUNNING", cpus=99, user="carol", account="elsewhere", nodes=("cpu-1",)),
)


def test_a_limit_of_an_account_above_is_found_with_who_uses_it() -> None:
    shown = explained(job(1, state_reason="AssocGrpCpuLimit", cpus=8), jobs=RUNNING, associations=ASSOCIATIONS, qos=())
    assert (
        "Account science may use 24 CPUs at a time: 20 CPUs in use by 2 jobs, and this job asks for 8 CPUs more"
        in shown
    )
    assert "bob      biology     1  12 CPUs" in shown
    assert "carol" not in shown
    assert "will not start as it is" not in shown


def test_a_job_that_is_larger_than_its_limit_never_starts() -> None:
    shown = explained(job(1, state_reason="AssocGrpCpuLimit", cpus=25), associations=ASSOCIATIONS, qos=())
    assert "more than the limit: it will not start as it is" in shown


def test_a_limit_of_jobs_of_a_user() -> None:
    shown = explained(job(1, state_reason="AssocMaxJobsLimit"), jobs=RUNNING, associations=ASSOCIATIONS, qos=())
    assert "User alice in account physics may use 2 jobs at a time: 1 jobs in use by 1 job" in shown


def test_a_limit_of_a_qos_for_each_user_counts_that_user_in_all_accounts() -> None:
    qos = (Qos(name="normal", limits=QosLimits(max_tres_per_user=Tres.parse("gres/gpu=4"))), Qos(name="other"))
    held = (
        job(11, "RUNNING", account="biology", tres_allocated="cpu=1,gres/gpu=3", nodes=("cpu-0",)),
        job(12, "RUNNING", user="bob", tres_allocated="cpu=1,gres/gpu=4", nodes=("cpu-0",)),
    )
    one = job(1, state_reason="QOSMaxGRESPerUser", tres_requested="cpu=1,gres/gpu=2")
    shown = explained(one, jobs=held, associations=(), qos=qos)
    assert (
        "QOS normal for user alice may use 4 generic resources at a time: 3 generic resources in use by 1 job" in shown
    )
    assert "bob" not in shown


def test_without_accounting_the_users_of_the_account_are_shown_all_the_same() -> None:
    shown = explained(job(1, state_reason="AssocGrpCpuLimit", cpus=8), jobs=RUNNING)
    assert "How high the limit is cannot be told" in shown
    assert "alice    physics     1  8 CPUs" in shown


@pytest.mark.parametrize(
    ("reason", "field", "per"),
    [
        ("AssocGrpCpuLimit", "group_tres", "group"),
        ("AssocGrpMemLimit", "group_tres", "group"),
        ("AssocGrpGRES", "group_tres", "group"),
        ("AssocGrpJobsLimit", "group_jobs", "group"),
        ("AssocGrpCPUMinutesLimit", "", "group"),
        ("AssocGrpCPURunMinutesLimit", "", "group"),
        ("AssocMaxJobsLimit", "max_jobs", "user"),
        ("AssocMaxCpuPerJobLimit", "max_tres_per_job", "job"),
        ("AssocMaxNodePerJobLimit", "max_tres_per_job", "job"),
        ("AssocMaxWallDurationPerJobLimit", "max_wall_per_job", "job"),
        ("QOSGrpCpuLimit", "group_tres", "group"),
        ("QOSGrpNodeLimit", "group_tres", "group"),
        ("QOSMaxCpuPerUserLimit", "max_tres_per_user", "user"),
        ("QOSMaxGRESPerUser", "max_tres_per_user", "user"),
        ("QOSMaxJobsPerUserLimit", "max_jobs_per_user", "user"),
        ("QOSMaxMemoryPerJob", "max_tres_per_job", "job"),
        ("QOSMaxNodePerUserLimit", "max_tres_per_user", "user"),
        ("QOSMaxWallDurationPerJobLimit", "max_wall_per_job", "job"),
        ("QOSMinCpuNotSatisfied", "min_tres_per_job", "job"),
    ],
)
def test_slurms_words_for_limits_are_read(reason: str, field: str, per: str) -> None:
    found = limits.kind(reason)
    assert found is not None
    assert (found.field, found.per) == (field, per)
    names = {*AssociationLimits.__dataclass_fields__, *QosLimits.__dataclass_fields__, ""}
    assert field in names


def test_jobs_of_a_higher_priority_are_shown_the_first_first() -> None:
    ahead = tuple(job(number, priority=200 + number, state_reason="Resources") for number in range(10, 40))
    shown = explained(job(1, state_reason="Priority"), jobs=ahead)
    assert "30 jobs with a higher priority than its 100 wait before it; job 39 is first in line" in shown
    assert "and 25 more jobs before it" in shown


def test_dependencies_are_shown_with_the_state_of_each_job() -> None:
    shown = explained(
        job(1, state_reason="Dependency", dependency="afterok:11(unfulfilled),afterany:99_*"), jobs=RUNNING
    )
    assert "afterok    11    RUNNING" in shown
    assert "Slurm does not know it any more" in shown
    never = explained(job(1, state_reason="DependencyNeverSatisfied", dependency="afterok:99(failed)"))
    assert "never starts as it is" in never


def test_licences_reservations_times_and_holds() -> None:
    licence = License(name="matlab", total=3, used=3)
    holder = job(11, "RUNNING", user="bob", licenses="matlab:3")
    shown = explained(job(1, state_reason="Licenses", licenses="matlab:1"), jobs=(holder,), licenses=(licence,))
    assert "matlab       3     3     0  bob" in shown
    later = Reservation(name="course", start_time=NOW + timedelta(hours=3), end_time=NOW + timedelta(hours=5))
    shown = explained(job(1, state_reason="Reservation", reservation="course"), reservations=(later,))
    assert "begins in 3h, ends in 5h" in shown
    assert "not there any more" in explained(job(1, state_reason="Reservation", reservation="gone"))
    assert "may begin in 2h" in explained(job(1, state_reason="BeginTime", eligible_time=NOW + timedelta(hours=2)))
    assert "held by an administrator" in explained(job(1, state_reason="JobHeldAdmin"))
    assert "held by its user" in explained(job(1, state_reason="JobHeldUser"))


def test_partitions_that_are_down_or_too_small() -> None:
    small = partition(state="UP", max_nodes=2, max_time=timedelta(hours=1), total_nodes=4)
    one = job(1, state_reason="PartitionTimeLimit", node_count=3, time_limit=timedelta(hours=2))
    shown = explained(one, partitions=(small,))
    assert "allows 2 nodes for a job" in shown
    assert "allows 1:00:00, and the job asks for 2:00:00" in shown
    assert "INACTIVE" in explained(job(1, state_reason="PartitionInactive"), partitions=(partition(state="INACTIVE"),))
    assert explained(one, partitions=(partition(max_time=INFINITE, total_nodes=4),)).count("allows 1:00:00") == 0


@pytest.mark.parametrize("reason", [*_WORDS, "SomethingNew", "", "Nodes required for job are DOWN"])
def test_every_reason_has_an_answer(reason: str) -> None:
    shown = explained(job(1, state_reason=reason))
    assert len(shown.splitlines()) >= 4
    assert "Slurm's reason" in shown


def test_jobs_that_run_or_have_ended() -> None:
    shown = explained(job(1, "RUNNING", nodes=("cpu-0",), node_list="cpu-0", start_time=before(hours=1)))
    assert "It runs on cpu-0" in shown
    assert "started 1h ago" in shown
    assert "It ended" in explained(job(1, "FAILED", state_reason="NonZeroExitCode", end_time=before(minutes=2)))


def test_a_job_is_found_by_the_names_that_people_use() -> None:
    jobs = (
        job(5, array_job_id=5, array_tasks="2-9"),
        job(6, "RUNNING", array_job_id=5, array_task_id=0),
        job(7, "RUNNING", array_job_id=5, array_task_id=1),
    )
    assert [one.id for one in job_rules.find("5", jobs)] == [5, 6, 7]
    assert [one.id for one in job_rules.find("5_1", jobs)] == [7]
    assert [one.id for one in job_rules.find("5_4", jobs)] == [5]
    assert job_rules.find("x; rm", jobs) == []


def test_thousands_of_nodes_and_jobs_do_not_flood_the_screen() -> None:
    nodes = tuple(node(f"n-{index}", "MIXED", alloc_cpus=index % 17) for index in range(5000))
    jobs = tuple(
        job(index, "RUNNING", user=f"u{index}" * 30, cpus=1, nodes=(f"n-{index % 5000}",)) for index in range(2, 10_000)
    )
    for reason in ("Resources", "AssocGrpCpuLimit", "Priority"):
        lines = explained(job(1, state_reason=reason, cpus=16, name="x" * 9000), nodes=nodes, jobs=jobs).splitlines()
        assert len(lines) < 30
        assert max(map(len, lines)) < 600


def on(name: str, **more: Any) -> str:
    pod = PodFacts(name=name, nodeset="gpu", node="host-1", phase="Running", ready=True)
    return text(node_rules.screen(name, PICTURE, more.get("pod", pod), NodeSetFacts(name="gpu", cluster="slurm")))


def test_a_node_says_who_drained_it_and_what_ends_that() -> None:
    shown = on("cpu-2")
    assert "Reason: new fans, set by root 5h ago." in shown
    assert "kubectl slurm undrain cpu-2" in shown
    shown = on("gpu-2")
    assert "The operator drains it and undrains it itself" in shown
    assert "4102" in shown


def test_a_node_that_does_not_answer_points_to_its_pod() -> None:
    trouble = PodFacts(name="gpu-1", nodeset="gpu", phase="Pending", trouble="container slurmd: ImagePullBackOff: no")
    shown = on("gpu-1", pod=trouble)
    assert "does not answer slurmctld" in shown
    assert "ImagePullBackOff" in shown
    assert "It takes jobs that fit" in on("cpu-1")
    assert "none in this namespace" in on("cpu-1", pod=None)


def test_printed_commands_go_where_this_one_went(run: Run, fake_slurm: FakeSlurmrestd) -> None:
    fake_slurm.add_node("w-0", state="IDLE+DRAIN", reason="new fans")
    fake_slurm.add_node("w-1", state="DOWN+NOT_RESPONDING", reason="Not responding")
    here = "--context='my prod' --namespace=slurm"
    assert f"kubectl slurm undrain w-0 {here}" in run("explain", "node/w-0", "--context=my prod")
    assert f"kubectl slurm logs node/w-1 {here}" in run("explain", "node/w-1", "--context=my prod")
