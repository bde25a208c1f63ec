"""Accounting: jobs are recorded, limits hold them, and nothing is lost while slurmdbd or its database is away."""

from __future__ import annotations

import base64
import re
import subprocess
from pathlib import Path

import pytest

from hack.localkube.kubectl import wait_for
from hack.localkube.paths import PROJECT
from hack.localkube.programs import build
from slurm_client import MintedToken, SyncSlurmClient
from slurm_client.models import AccountSpec, AssociationLimits, AssociationSpec
from tests.support.configuring import edit, wait_live
from tests.support.port_forward import port_forward
from tests.support.slurm_in_kubernetes import PATIENCE, NewSlurm, SlurmInKubernetes

pytestmark = [pytest.mark.timeout(1500), pytest.mark.long, pytest.mark.usefixtures("operator")]

NODE = "compute-0"
PAGE = PROJECT / "docs" / "accounting.md"
DBD, DATABASE = "slurm-accounting-0", "slurm-database-0"


def wait_accounting(slurm: SlurmInKubernetes, status: str = "True") -> None:
    def shown() -> bool:
        return slurm.condition("cluster", slurm.name, "AccountingReady").get("status") == status

    wait_for(f"AccountingReady is {status}", shown, PATIENCE)


def recorded(slurm: SlurmInKubernetes, *jobs: str) -> dict[str, tuple[str, ...]]:
    """User, account, state and exit code of jobs in slurmdbd, by id."""
    answer = slurm.run(
        "sacct", "-n", "-P", "-X", "-a", "-S", "now-1days", "-o", "jobid,user,account,state,exitcode",
        *(f"--jobs={','.join(jobs)}" for _ in jobs[:1]),
    )  # fmt: skip
    return {line.split("|")[0]: tuple(line.split("|")[1:]) for line in answer.splitlines() if line}


def wait_recorded(slurm: SlurmInKubernetes, state: str, *jobs: str) -> dict[str, tuple[str, ...]]:
    """Wait until slurmdbd has all these jobs in a state."""
    found: dict[str, tuple[str, ...]] = {}

    def there() -> bool:
        found.clear()
        # Errors count as "not yet": slurmdbd may be away.
        found.update(recorded(slurm, *jobs))
        return all(found.get(job, ("", "", ""))[2] == state for job in jobs)

    wait_for(f"jobs {jobs} are recorded as {state}", there, PATIENCE)
    return found


@pytest.fixture(scope="module")
def slurm(new_slurm: NewSlurm) -> SlurmInKubernetes:
    """A Cluster that has run without accounting, with a job on it when that is switched on."""
    instance = new_slurm("accounting")
    instance.create(extraConf="MinJobAge=3600")
    instance.nodeset("compute", 1)
    instance.wait_ready()
    instance.wait_idle([NODE])
    return instance


def test_accounting_is_switched_on_under_a_running_job(slurm: SlurmInKubernetes) -> None:
    held = slurm.hold(NODE)
    before = slurm.pod_uid(NODE)
    edit(slurm, accounting={"image": slurm.image("slurmdbd")})
    wait_accounting(slurm)
    assert slurm.job_state(held) == "RUNNING"
    assert slurm.pod_uid(NODE) == before
    slurm.release(held, NODE)
    slurm.wait_job(held, "COMPLETED")
    shown = wait_recorded(slurm, "COMPLETED", held)
    assert shown[held][0] == "root"
    slurm.wait_ready()


def under_load(slurm: SlurmInKubernetes, pod: str) -> None:
    """Kill a daemon's container while jobs start and end, and count what was recorded afterwards."""
    jobs = [slurm.submit(seconds=0) for _ in range(10)]
    slurm.kube("delete", "pod", pod, "--force", "--grace-period=0")
    jobs += [slurm.submit(seconds=0) for _ in range(10)]
    for job in jobs:
        slurm.wait_job(job, "COMPLETED")
    shown = wait_recorded(slurm, "COMPLETED", *jobs)
    assert shown.keys() >= set(jobs)
    assert {shown[job][3] for job in jobs} == {"0:0"}
    wait_accounting(slurm)


def test_no_record_is_lost_when_the_database_is_killed(slurm: SlurmInKubernetes) -> None:
    under_load(slurm, DATABASE)


def test_no_record_is_lost_when_slurmdbd_is_killed(slurm: SlurmInKubernetes) -> None:
    under_load(slurm, DBD)


def test_users_accounts_and_limits_are_those_of_slurmdbd(slurm: SlurmInKubernetes) -> None:
    key = base64.b64decode(slurm.get("secret", "slurm-auth-jwt")["data"]["jwt.key"])
    with (
        port_forward(slurm.kubectl, slurm.namespace, "service/slurm-restapi", 6820) as port,
        SyncSlurmClient(f"http://127.0.0.1:{port}", MintedToken(key)) as client,
    ):
        name = client.db.clusters()[0].name
        client.db.create_account(AccountSpec(name="physics"))
        client.db.create_association(AssociationSpec(account="physics", cluster=name))
        limits = AssociationLimits(max_jobs=1)
        client.db.create_association(AssociationSpec(account="physics", cluster=name, user="user", limits=limits))
    wait_live(slurm, edit(slurm, extraConf="MinJobAge=3600\nAccountingStorageEnforce=limits"))
    options = ("--uid=user", "--account=physics")
    first = slurm.hold(NODE, *options, "--oversubscribe")
    second = slurm.submit(*options, seconds=0)
    wait_for("the limit holds the second job", lambda: "AssocMaxJobsLimit" in slurm.job(second)["Reason"], PATIENCE)
    slurm.release(first, NODE)
    shown = wait_recorded(slurm, "COMPLETED", first, second)
    assert {shown[job][:2] for job in (first, second)} == {("user", "physics")}
    failed = slurm.run("sbatch", "--parsable", "--output=/dev/null", *options, "--wrap=exit 3").strip()
    assert wait_recorded(slurm, "FAILED", failed)[failed][3] == "3:0"


def commands() -> list[str]:
    """The commands of the section on backups, block by block."""
    return re.findall(r"<!-- backup: [^>]*-->\n```sh\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)


def test_a_backup_is_made_and_restored_as_the_documentation_says(slurm: SlurmInKubernetes, tmp_path: Path) -> None:
    before = recorded(slurm)
    assert before
    kubectl = f"{build.tool('kubectl')} --kubeconfig={slurm.kubectl.kubeconfig}"
    backup, restore = (
        one.replace("kubectl -n site", f"{kubectl} -n {slurm.namespace}") for one in commands()
    )  # fmt: skip
    for block in (backup, restore):
        run = subprocess.run(["sh", "-ec", block], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr
    assert "CREATE DATABASE" in (tmp_path / "backup.sql").read_text()
    wait_recorded(slurm, "COMPLETED", *(job for job, fields in before.items() if fields[2] == "COMPLETED"))
