"""Accounting: jobs are recorded, limits hold them, and nothing is lost while slurmdbd or its database is away."""

from __future__ import annotations

import base64
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hack.localkube.kubectl import wait_for
from hack.localkube.paths import PROJECT
from hack.localkube.programs import build
from slurm_client import MintedToken, SyncSlurmClient
from slurm_client.models import AccountSpec, AssociationLimits, AssociationSpec
from tests.support.configuring import edit, wait_live
from tests.support.port_forward import port_forward
from tests.support.slurm_answers import answered
from tests.support.slurm_in_kubernetes import PATIENCE, NewSlurm, SlurmInKubernetes

pytestmark = [pytest.mark.timeout(1500), pytest.mark.long(570), pytest.mark.usefixtures("operator")]

NODE = "compute-0"
PAGE = PROJECT / "docs" / "accounting.md"
DBD, DATABASE, CONTROLLER = "slurm-accounting-0", "slurm-database-0", "slurm-controller-0"


def wait_accounting(slurm: SlurmInKubernetes, status: str = "True") -> None:
    def shown() -> bool:
        return slurm.condition("cluster", slurm.name, "AccountingReady").get("status") == status

    wait_for(f"AccountingReady is {status}", shown, PATIENCE)


def recorded(slurm: SlurmInKubernetes, *jobs: str) -> dict[str, tuple[str, ...]]:
    """User, account, state and exit code of jobs in slurmdbd, by id."""
    answer = slurm.look(
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


@pytest.fixture(scope="module")
def faulty(slurm: SlurmInKubernetes) -> tuple[str, ...]:
    """Clusters whose databases are at fault in three ways; it takes minutes until they have said so."""
    password = {"name": "wrong", "key": "password"}
    slurm.kube("create", "secret", "generic", "wrong", "--from-literal=password=not-this-one")
    databases: dict[str, dict[str, Any]] = {
        "denied": {"database": {"host": "slurm-database", "passwordRef": password}},
        "away": {"database": {"host": "nosuch.invalid", "passwordRef": password}},
        "unbound": {"mariadb": {"persistence": {"storageClassName": "nosuch"}}},
    }
    for name, accounting in databases.items():
        another(slurm, name, {"image": slurm.image("slurmdbd"), **accounting})
    return tuple(databases)


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
    """Kill a daemon's pod while jobs wait, start and end, and count what was recorded afterwards."""
    held = slurm.hold(NODE)
    jobs = [slurm.submit(seconds=0) for _ in range(10)]
    # slurmdbd forgets a record of which MariaDB ends in the middle of the commit (docs/accounting.md): none is on its
    # way when the pod is killed. All that is recorded afterwards has happened without the daemon.
    wait_recorded(slurm, "PENDING", *jobs)
    wait_for("slurmctld has told slurmdbd all", lambda: told_all(slurm), PATIENCE)
    slurm.kube("delete", "pod", pod, "--force", "--grace-period=0")

    def accepted() -> bool:
        # A command that still finds the address of the pod before fails after half a minute.
        jobs.append(slurm.submit(seconds=0))
        return True

    wait_for("slurmctld is found", accepted, PATIENCE)
    jobs += [slurm.submit(seconds=0) for _ in range(9)]
    slurm.release(held, NODE)
    for job in jobs:
        slurm.wait_job(job, "COMPLETED")
    shown = wait_recorded(slurm, "COMPLETED", held, *jobs)
    assert shown.keys() >= set(jobs)
    assert {shown[job][3] for job in jobs} == {"0:0"}
    wait_accounting(slurm)


def told_all(slurm: SlurmInKubernetes) -> bool:
    """Whether slurmctld keeps nothing for slurmdbd."""
    return re.search(r"DBD Agent queue size:\s+0$", slurm.look("sdiag"), re.MULTILINE) is not None


def test_no_record_is_lost_while_the_database_is_away(slurm: SlurmInKubernetes) -> None:
    under_load(slurm, DATABASE)


def test_no_record_is_lost_when_slurmdbd_is_killed(slurm: SlurmInKubernetes) -> None:
    under_load(slurm, DBD)


@pytest.mark.usefixtures("faulty")
@pytest.mark.full
def test_no_record_is_lost_when_slurmctld_is_killed(slurm: SlurmInKubernetes) -> None:
    held = slurm.hold(NODE)
    jobs = [slurm.submit(seconds=0) for _ in range(10)]
    now = int(slurm.control("date", "+%s"))

    def saved() -> bool:
        # It saves what has changed: without another change the last time may have been just before `now`.
        slurm.control("scontrol", "update", f"JobId={jobs[-1]}", "Comment=saved")
        return int(slurm.control("stat", "--format=%Y", "/var/spool/slurmctld/job_state")) > now

    # What slurmctld has not saved yet, it does not know when it starts again.
    wait_for("slurmctld has saved its jobs", saved, PATIENCE)
    before = slurm.get("pod", CONTROLLER)["metadata"]["uid"]
    slurm.kube("delete", "pod", CONTROLLER, "--force", "--grace-period=0")
    wait_for("another slurmctld", lambda: slurm.get("pod", CONTROLLER)["metadata"]["uid"] != before, PATIENCE)
    wait_for("slurmctld has its jobs", lambda: slurm.job_state(held) == "RUNNING", PATIENCE)

    def accepted() -> bool:
        # A command that still finds the address of the pod before fails after half a minute.
        jobs.append(slurm.submit(seconds=0))
        return True

    wait_for("slurmctld is found", accepted, PATIENCE)
    jobs += [slurm.submit(seconds=0) for _ in range(9)]
    slurm.release(held, NODE)
    shown = wait_recorded(slurm, "COMPLETED", held, *jobs)
    assert {shown[job][3] for job in jobs} == {"0:0"}
    wait_accounting(slurm)


def test_a_configuration_that_slurmdbd_refuses_never_reaches_it(slurm: SlurmInKubernetes) -> None:
    before = slurm.get("pod", DBD)["metadata"]["uid"]
    edit(slurm, accounting={"extraConf": "PurgeJobAfter=24parsecs"})
    wait_message(slurm, slurm.name, "ConfigRefused", "slurmdbd refuses it: error: Invalid purge unit 'parsecs'")
    slurm.wait_event(slurm.name, "ConfigRefused", "Invalid purge unit")
    assert slurm.get("pod", DBD)["metadata"]["uid"] == before
    assert recorded(slurm)
    edit(slurm, accounting={"extraConf": "PurgeJobAfter=24months"})
    wait_for(
        "slurmdbd purges by its new configuration",
        lambda: bool(re.search(r"PurgeJobAfter\s+= 24 months", slurm.look("sacctmgr", "show", "configuration"))),
        PATIENCE,
    )
    wait_accounting(slurm)
    assert slurm.get("pod", DBD)["metadata"]["uid"] != before


def wait_message(slurm: SlurmInKubernetes, cluster: str, reason: str, words: str) -> None:
    """Wait for a reason and words of `AccountingReady` of a Cluster."""

    def shown() -> bool:
        found = slurm.condition("cluster", cluster, "AccountingReady")
        return found["reason"] == reason and re.search(words, found["message"]) is not None

    wait_for(f"AccountingReady of {cluster} is {reason}: {words}", shown, PATIENCE)


@pytest.mark.full
def test_another_key_of_tokens_reaches_slurmctld_and_slurmdbd_and_ends_neither_job_nor_database(
    slurm: SlurmInKubernetes,
) -> None:
    def uid(pod: str) -> str:
        return str(slurm.get("pod", pod)["metadata"]["uid"])

    held, uids = slurm.hold(NODE), {one: uid(one) for one in (DATABASE, CONTROLLER, DBD)}
    new = b"another key of auth/jwt, 32 bytes"
    data = {"data": {"jwt.key": base64.b64encode(new).decode()}}
    slurm.kube("patch", "secret", "slurm-auth-jwt", "--type=merge", f"--patch={json.dumps(data)}")
    wait_for("slurmdbd's pod is replaced", lambda: uid(DBD) != uids[DBD], PATIENCE)
    wait_accounting(slurm)
    slurm.wait_ready()
    with (
        port_forward(slurm.kubectl, slurm.namespace, "service/slurm-restapi", 6820) as port,
        SyncSlurmClient(f"http://127.0.0.1:{port}", MintedToken(new)) as client,
    ):
        # slurmrestd asks both daemons for these, with this token. It may still try the address that slurmdbd had.
        answered("clusters of slurmdbd", client.db.clusters)
        answered("partitions", client.partitions)
    assert (uid(DATABASE), uid(CONTROLLER)) == (uids[DATABASE], uids[CONTROLLER])
    slurm.release(held, NODE)
    wait_recorded(slurm, "COMPLETED", held)


def test_users_accounts_and_limits_are_those_of_slurmdbd(slurm: SlurmInKubernetes) -> None:
    key = base64.b64decode(slurm.get("secret", "slurm-auth-jwt")["data"]["jwt.key"])
    with (
        port_forward(slurm.kubectl, slurm.namespace, "service/slurm-restapi", 6820) as port,
        SyncSlurmClient(f"http://127.0.0.1:{port}", MintedToken(key)) as client,
    ):
        name = answered("clusters of slurmdbd", client.db.clusters)[0].name
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


def accounts_applied(slurm: SlurmInKubernetes, generation: int, status: str, words: str) -> None:
    """Wait until `AccountsApplied` is about this generation of the spec, and says so."""

    def shown() -> bool:
        found = slurm.condition("cluster", slurm.name, "AccountsApplied")
        this = found["status"] == status and found.get("observedGeneration", 0) >= generation
        return bool(this and re.search(words, found["message"]))

    wait_for(f"AccountsApplied of generation {generation} is {status}: {words}", shown, PATIENCE)


def names(slurm: SlurmInKubernetes, what: str) -> set[str]:
    """Names of all accounts, users or QOS in slurmdbd; sacctmgr gives up a connection after two seconds."""
    found: set[str] = set()

    def read() -> bool:
        field = what if what != "qos" else "name"
        found.update(slurm.look("sacctmgr", "-n", "-P", "show", what, f"format={field}").split())
        return True

    wait_for(f"sacctmgr shows each {what}", read, PATIENCE)
    return found


def test_a_tree_of_accounts_is_applied_edited_and_pruned(slurm: SlurmInKubernetes) -> None:
    chemistry = {"name": "chemistry", "users": ["user"], "limits": {"grpJobs": 1}}
    users = [{"name": "user", "defaultAccount": "chemistry"}]
    tree: dict[str, Any] = {"qos": [{"name": "urgent", "priority": 7}], "accounts": [chemistry], "users": users}
    accounts_applied(
        slurm, edit(slurm, accounting={"tree": tree}), "True", "slurmdbd has 1 accounts, 1 users, 1 QOS of the tree; "
    )  # fmt: skip
    assert {"chemistry", "physics"} <= names(slurm, "account")
    options = ("--uid=user", "--account=chemistry")
    first = slurm.hold(NODE, *options, "--oversubscribe")
    second = slurm.submit(*options, seconds=0)
    wait_for("the limit holds the second job", lambda: slurm.job(second)["Reason"] == "AssocGrpJobsLimit", PATIENCE)

    tree["accounts"] = [{**chemistry, "limits": {"grpJobs": 2}}, {"name": "lab", "parent": "nosuch"}]
    refused = r"spec\.accounting\.tree\.accounts\[lab\]\.parent: there is no account nosuch in the tree"
    accounts_applied(slurm, edit(slurm, accounting={"tree": tree}), "False", refused)
    assert "chemistry" in names(slurm, "account")
    tree = {**tree, "qos": [], "accounts": [{**chemistry, "limits": {"grpJobs": 2}}], "prune": True}
    accounts_applied(slurm, edit(slurm, accounting={"tree": tree}), "True", "slurmdbd has 1 accounts, 1 users, 0 QOS")
    assert names(slurm, "account") == {"root", "chemistry"}
    assert "urgent" not in names(slurm, "qos")
    wait_for("the limit holds it no longer", lambda: slurm.job(second)["Reason"] != "AssocGrpJobsLimit", PATIENCE)
    slurm.release(first, NODE)
    wait_recorded(slurm, "COMPLETED", first, second)


@pytest.mark.full
def test_each_fault_of_a_database_is_told_in_its_own_words_and_affects_nobody_else(
    slurm: SlurmInKubernetes, faulty: tuple[str, ...]
) -> None:
    # Its container is restarted once, so that its words can be seen; a busy kubelet may lose them again afterwards.
    shown = ("runs and does not listen. It has said", "does not start: slurmdbd has ended: exit code 137")
    never = f"slurmdbd's pod .* ({'|'.join(shown)}): .*"
    wait_message(slurm, "denied", "DaemonStuck", f"{never}1045 Access denied for user 'slurm'")
    wait_message(slurm, "away", "DaemonStuck", f"{never}2005 Unknown server host 'nosuch.invalid'")
    wait_message(slurm, "unbound", "DaemonStuck", "mariadb's pod unbound-database-0 does not start: not scheduled: ")
    # A new slurmctld waits for its slurmdbd; nobody else does.
    assert slurm.condition("cluster", slurm.name, "AccountingReady")["status"] == "True"
    wait_recorded(slurm, "COMPLETED", slurm.submit(seconds=0))
    slurm.kube("delete", "clusters.slinky.slurm.net", *faulty, "--wait=false")


def another(slurm: SlurmInKubernetes, name: str, accounting: dict[str, Any], **spec: Any) -> None:
    """Apply another Cluster in the namespace, without nodes."""
    daemons = {
        "controller": {"image": slurm.image("slurmctld"), "persistence": {"enabled": False}},
        "restapi": {"image": slurm.image("slurmrestd")},
    }
    slurm.kubectl.apply([slurm.object("Cluster", name, {**daemons, "accounting": accounting, **spec})])


def commands() -> list[str]:
    """The commands of the section on backups, block by block."""
    return re.findall(r"<!-- backup: [^>]*-->\n```sh\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)


def test_a_backup_is_made_and_restored_as_the_documentation_says(slurm: SlurmInKubernetes, tmp_path: Path) -> None:
    before = [job for job, fields in recorded(slurm).items() if fields[2] == "COMPLETED"]
    assert before
    kubectl = f"{build.tool('kubectl')} --kubeconfig={slurm.kubectl.kubeconfig}"

    def follow(block: str) -> None:
        words = block.replace("kubectl -n slurm", f"{kubectl} -n {slurm.namespace}")
        run = subprocess.run(["sh", "-ec", words], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr

    backup, locked_backup, restore = commands()
    follow(backup)
    assert "CREATE DATABASE" in (tmp_path / "backup.sql").read_text()
    (tmp_path / "backup.sql").rename(tmp_path / "earlier.sql")
    since = slurm.submit(seconds=0)
    wait_recorded(slurm, "COMPLETED", since)
    follow(locked_backup)
    # Nobody can tell slurmdbd now, so that nothing comes between the backup and what replaces the database.
    meanwhile = slurm.submit(seconds=0)
    slurm.wait_job(meanwhile, "COMPLETED")
    follow(restore)
    assert "CREATE DATABASE" in (tmp_path / "replaced.sql").read_text()
    wait_recorded(slurm, "COMPLETED", *before, since, meanwhile)


@pytest.mark.full
def test_two_clusters_of_one_name_on_one_database_are_told(slurm: SlurmInKubernetes) -> None:
    wait_accounting(slurm)
    taken = re.search(r"^ClusterName\s+= (\S+)", slurm.control("scontrol", "show", "config"), re.MULTILINE)
    assert taken is not None
    database = {"host": "slurm-database", "passwordRef": {"name": "slurm-database-password"}}
    another(slurm, "twin", {"image": slurm.image("slurmdbd"), "database": database}, clusterName=taken[1])

    def told() -> bool:
        # slurmdbd has the slurmctld that has registered last; the other Cluster says so.
        found = (slurm.condition("cluster", name, "AccountingReady") for name in (slurm.name, "twin"))
        words = f"as that of cluster {taken[1]}, not this Cluster's .* two clusters of one name use one database"
        return any(
            one.get("reason") == "ClusterNameTaken" and re.search(words, one["message"]) is not None for one in found
        )

    wait_for("one of the two says that its name is taken", told, PATIENCE)
    slurm.wait_job(slurm.submit(seconds=0), "COMPLETED")
