"""Users from an LDAP server by SSSD, and from passwd and group: who a job runs as, on each of its nodes."""

from __future__ import annotations

import base64
import json
import shlex
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from hack.images.recipes.identity import IMAGES
from hack.localkube.kubectl import KubectlFailed, wait_for
from hack.localkube.paths import PROJECT
from slurm_client import JobSpec, SyncSlurmClient
from slurm_client.errors import SlurmError
from tests.support.logins import visitor
from tests.support.pods import identities
from tests.support.port_forward import port_forward
from tests.support.slurm_in_kubernetes import OLDER, PATIENCE, NewSlurm, SlurmInKubernetes

pytestmark = [pytest.mark.timeout(1200), pytest.mark.usefixtures("operator"), pytest.mark.long(260)]

LDAP = "ldap"
SSSD_CONF = """\
[sssd]
services = nss, ssh
domains = site

[nss]
timeout = 60
entry_negative_timeout = 1

[domain/site]
timeout = 60
id_provider = ldap
max_id = 64029
auth_provider = none
access_provider = permit
ldap_uri = ldap://ldap:3389
ldap_search_base = dc=site
ldap_id_use_start_tls = false
ldap_default_bind_dn = cn=admin,dc=site
ldap_default_authtok = test
entry_cache_timeout = 5
offline_timeout = 1
offline_timeout_max = 1
offline_timeout_random_offset = 0
"""
"""What SSSD asks the server of `containers/slapd`: soon again, for those whom it has found and for others.

Its processes end each other when one gives no sign for 10 seconds, as on a busy machine: here for a minute (timeout).
"""

ADA = "uid=20001(ada) gid=30001(physics) groups=30001(physics),30002(beam)"
ADMINISTRATOR = ("-x", "-H", "ldap://127.0.0.1:3389", "-D", "cn=admin,dc=site", "-w", "test")

PASSWD = """\
# users of this site
alice:x:1000:2001:Alice:/home/alice:/bin/bash
bob:x:2002:2002::/home/bob:/bin/bash
"""
GROUP = """\
alice:x:2001:
bob:x:2002:
lab:x:2100:alice,bob
"""
WHO = "#!/bin/sh\nsrun --label id\nwhoami\n"
NODES = ["compute-0", "compute-1"]
CAMPUS = ["campus-0", "campus-1"]
"""Nodes of the sample with passwd and group."""


@pytest.fixture(scope="module")
def from_ldap(new_slurm: NewSlurm) -> SlurmInKubernetes:
    """A Cluster with users from an LDAP server."""
    instance = new_slurm("ldap")
    instance.create(
        identity={"sssd": {"confRef": {"name": "sssd"}}, "homes": {"claimName": "homes", "create": True}},
        login=[{"name": "front", "image": instance.image("login")}],
        partitions=[
            {"name": group, "nodeSets": ["compute"], "config": f"AllowGroups={group}"} for group in ("beam", "physics")
        ],
        # Groups of partitions are read again after these seconds: the directory may start after slurmctld.
        extraConf="GroupUpdateTime=5",
    )
    meta = {"namespace": instance.namespace}
    secret = {"sssd.conf": base64.b64encode(SSSD_CONF.encode()).decode()}
    instance.kubectl.apply(
        [
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {**meta, "name": LDAP},
                "spec": {"selector": {"app": LDAP}, "ports": [{"port": 3389}]},
            },
            {"apiVersion": "v1", "kind": "Secret", "metadata": {**meta, "name": "sssd"}, "data": secret},
            homes(instance),
        ]
    )
    instance.run_pods(server(instance))
    instance.nodeset("compute", 2)
    instance.wait_ready()
    instance.wait_idle(NODES)
    return instance


@pytest.fixture(scope="module")
def from_files(new_slurm: NewSlurm) -> SlurmInKubernetes:
    """A Cluster with users from a ConfigMap, and their home folders on a claim."""
    instance = new_slurm("passwd", "campus")
    instance.kubectl("create", "namespace", instance.namespace)
    instance.kube("apply", f"--filename={PROJECT / 'config/samples/more/cluster-passwd.yaml'}")
    instance.kubectl.apply([people(instance, PASSWD), homes(instance)])
    instance.wait_ready()
    instance.wait_idle(CAMPUS)
    return instance


def server(slurm: SlurmInKubernetes) -> dict[str, object]:
    """Return the pod of the LDAP server."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": LDAP, "namespace": slurm.namespace, "labels": {"app": LDAP}},
        "spec": {"containers": [{"name": LDAP, "image": IMAGES["slapd"]}], "terminationGracePeriodSeconds": 1},
    }


def change(slurm: SlurmInKubernetes, *lines: str) -> None:
    """Change an entry of the directory (LDIF)."""
    entry = "".join(f"{line}\n" for line in lines)
    changed = f"printf %s {shlex.quote(entry)} | ldapmodify {shlex.join(ADMINISTRATOR)}"
    slurm.kube("exec", LDAP, "--", "sh", "-c", changed)


def people(slurm: SlurmInKubernetes, passwd: str) -> dict[str, object]:
    """Return the ConfigMap with users."""
    metadata = {"name": "people", "namespace": slurm.namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"passwd": passwd, "group": GROUP}}


def homes(slurm: SlurmInKubernetes) -> dict[str, object]:
    """Return the claim for home folders."""
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "16Mi"}}}
    metadata = {"name": "homes", "namespace": slurm.namespace}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": claim}


def home(slurm: SlurmInKubernetes, user: str) -> str:
    """Return owner, group, mode and path of a user's home, as a node has it."""
    path = f"/home/{user}"
    return slurm.kube("exec", NODES[0], "--container=slurmd", "--", "stat", "--format=%u %g %a %n", path).strip()


def token(slurm: SlurmInKubernetes, user: str) -> str:
    """Return a token of a user, which SlurmUser may make for anybody."""
    return slurm.control("scontrol", "token", f"username={user}", "lifespan=600").strip().removeprefix("SLURM_JWT=")


def submitted(slurm: SlurmInKubernetes, user: str, folder: str = "/tmp") -> list[str]:
    """Submit a job on two nodes by REST with the token of a user; return its lines in order when it has completed."""
    out = f"{folder}/%j.who"
    spec = JobSpec(script=WHO, nodes="2", tasks=2, working_directory=folder, standard_output=out)
    with (
        port_forward(slurm.kubectl, slurm.namespace, f"service/{slurm.name}-restapi", 6820) as port,
        SyncSlurmClient(f"http://127.0.0.1:{port}", token(slurm, user)) as client,
    ):
        job = client.submit_job(spec).id
        wait_for(f"the end of job {job}", lambda: client.job(job).is_finished, PATIENCE)
        assert client.job(job).user == user
    shown = slurm.job(str(job))
    printed = slurm.kube("exec", shown["BatchHost"], "--container=slurmd", "--", "cat", f"{folder}/{job}.who")
    assert shown["JobState"] == "COMPLETED", printed
    return sorted(printed.splitlines())


def identity(slurm: SlurmInKubernetes, pod: str, container: str, user: str) -> str:
    """Return what a daemon's container knows of a user; empty if nothing."""
    try:
        return slurm.kube("exec", pod, f"--container={container}", "--", "id", user).strip()
    except KubectlFailed:
        return ""


def knows(slurm: SlurmInKubernetes, pod: str, container: str, user: str) -> bool:
    """Whether a daemon's container knows a user."""
    return identity(slurm, pod, container, user) != ""


def wait_known(slurm: SlurmInKubernetes, user: str) -> None:
    """Wait until slurmctld knows a user of the directory, and each node, which makes the home."""
    for pod, container in (("slurm-controller-0", "slurmctld"), *((node, "slurmd") for node in NODES)):
        wait_for(f"{user} in {pod}", partial(knows, slurm, pod, container, user), PATIENCE)


def test_a_user_of_the_directory_runs_a_job_on_two_nodes(from_ldap: SlurmInKubernetes) -> None:
    wait_known(from_ldap, "ada")
    assert submitted(from_ldap, "ada") == [f"0: {ADA}", f"1: {ADA}", "ada"]
    assert home(from_ldap, "ada") == "20001 30001 700 /home/ada"


def test_the_number_of_the_images_own_user_belongs_to_the_site_whose_home_the_node_makes(
    from_ldap: SlurmInKubernetes,
) -> None:
    """Nobody has logged in as grace: her home is there for the output of her first job."""
    wait_known(from_ldap, "grace")
    shown = "uid=1000(grace) gid=30002(beam) groups=30002(beam)"
    assert submitted(from_ldap, "grace", "/home/grace") == [f"0: {shown}", f"1: {shown}", "grace"]
    assert home(from_ldap, "grace") == "1000 30002 700 /home/grace"


def test_a_user_of_the_directory_logs_in_with_a_key_of_the_directory(
    from_ldap: SlurmInKubernetes, tmp_path: Path
) -> None:
    ada = visitor(from_ldap, tmp_path, "ada")
    changes = (
        "dn: uid=ada,dc=site",
        "add: objectClass",
        "objectClass: ldapPublicKey",
        "-",
        "add: sshPublicKey",
        f"sshPublicKey: {ada.public_key}",
    )
    change(from_ldap, *changes)
    ada.wait_ready()
    # A first login makes the home, as a first job does.
    from_ldap.kube("exec", NODES[0], "--container=slurmd", "--", "rm", "-rf", "/home/ada")
    wait_for("a login", lambda: ada.attempt("true", checked="accept-new").returncode == 0, PATIENCE)
    assert ada.say("pwd") == "/home/ada\n"
    assert home(from_ldap, "ada") == "20001 30001 700 /home/ada"
    lines = ada.say("cd /tmp; id; srun --label -N2 -n2 id").splitlines()
    assert [lines[0], *sorted(lines[1:])] == [ADA, f"0: {ADA}", f"1: {ADA}"]
    assert sorted(ada.say("cd /tmp; salloc -Q -N2 -n2 srun --label whoami").splitlines()) == ["0: ada", "1: ada"]
    job = ada.say("sbatch --parsable --wait --chdir=/tmp --output=/tmp/%j.who --wrap=id").strip()
    node = from_ldap.job(job)["BatchHost"]
    assert from_ldap.kube("exec", node, "--container=slurmd", "--", "cat", f"/tmp/{job}.who").strip() == ADA
    # Who has no key in the directory, or is not in it, does not get in.
    for stranger in ("grace", "nobodyknows"):
        assert "Permission denied (publickey)" in replace(ada, user=stranger).attempt("true").stderr


def test_the_password_of_the_directory_is_in_sssds_containers_only(from_ldap: SlurmInKubernetes) -> None:
    mounting = {
        (container["name"], volume["secret"].get("secretName"))
        for pod in from_ldap.get("pods")["items"]
        for container in (*pod["spec"]["containers"], *pod["spec"].get("initContainers", ()))
        for mount in container.get("volumeMounts", ())
        for volume in pod["spec"]["volumes"]
        if "secret" in volume and volume["name"] == mount["name"]
    }
    assert {container for container, secret in mounting if secret == "sssd"} == {"sssd"}


def test_partitions_are_for_groups_of_the_directory_that_list_somebody(from_ldap: SlurmInKubernetes) -> None:
    def asked(user: str, partition: str) -> str:
        spec = JobSpec(script="#!/bin/sh\ntrue\n", working_directory="/tmp", partition=partition)
        with (
            port_forward(from_ldap.kubectl, from_ldap.namespace, f"service/{from_ldap.name}-restapi", 6820) as port,
            SyncSlurmClient(f"http://127.0.0.1:{port}", token(from_ldap, user)) as client,
        ):
            return str(client.submit_job(spec).id)

    # ada is listed in beam, which is grace's own group. Nobody is listed in physics, which is ada's own group.
    for user in ("ada", "grace"):
        wait_for(user, partial(knows, from_ldap, "slurm-controller-0", "slurmctld", user), PATIENCE)
    jobs = [asked("ada", "beam"), asked("grace", "beam"), asked("ada", "physics")]
    for job in jobs[:2]:
        from_ldap.wait_job(job, "COMPLETED")

    def reason() -> str:
        return from_ldap.control("squeue", "--noheader", f"--jobs={jobs[2]}", "--format=%T %r").strip()

    waits = "PENDING uid 20001 not in group permitted to use this partition (physics). groups allowed: physics"
    wait_for("ada's job waits", lambda: reason() == waits, PATIENCE)
    change(from_ldap, "dn: cn=physics,dc=site", "add: memberUid", "memberUid: ada")
    from_ldap.wait_job(jobs[2], "COMPLETED")
    # As it was, for the other tests.
    change(from_ldap, "dn: cn=physics,dc=site", "delete: memberUid")


def refusal(slurm: SlurmInKubernetes, user: str) -> str:
    """Submit a job with a token of somebody unknown; return what slurmrestd answers. No job has been made."""
    before = slurm.control("squeue", "--all", "--states=all", "--noheader", "--format=%i")
    with (
        port_forward(slurm.kubectl, slurm.namespace, f"service/{slurm.name}-restapi", 6820) as port,
        SyncSlurmClient(f"http://127.0.0.1:{port}", token(slurm, user)) as client,
        pytest.raises(SlurmError) as caught,
    ):
        client.submit_job(JobSpec(script=WHO, working_directory="/tmp"))
    assert slurm.control("squeue", "--all", "--states=all", "--noheader", "--format=%i") == before
    return str(caught.value)


def held(slurm: SlurmInKubernetes, user: str) -> None:
    """Submit a job with a token of somebody unknown to a Slurm that takes it, and see that it is not run."""
    with (
        port_forward(slurm.kubectl, slurm.namespace, f"service/{slurm.name}-restapi", 6820) as port,
        SyncSlurmClient(f"http://127.0.0.1:{port}", token(slurm, user)) as client,
    ):
        job = str(client.submit_job(JobSpec(script=WHO, working_directory="/tmp")).id)
    wait_for(f"job {job} held", lambda: slurm.job(job)["Reason"] == "JobHeldAdmin", PATIENCE)
    assert slurm.job_state(job) == "PENDING"


def test_a_token_of_somebody_the_directory_does_not_know_is_refused(from_ldap: SlurmInKubernetes) -> None:
    if from_ldap.slurm == OLDER:
        held(from_ldap, "nobodyknows")
        return
    assert "Rejecting authentication of user nobody" in refusal(from_ldap, "nobodyknows")


@pytest.mark.full
def test_a_token_of_somebody_the_files_do_not_have_is_refused(from_files: SlurmInKubernetes) -> None:
    assert "Rejecting authentication of user nobody" in refusal(from_files, "nobodyknows")


def test_somebody_who_was_removed_from_the_directory_is_known_no_longer(from_ldap: SlurmInKubernetes) -> None:
    from_ldap.kube("exec", LDAP, "--", "ldapdelete", *ADMINISTRATOR, "uid=grace,dc=site")
    wait_for("grace's end", lambda: not knows(from_ldap, "slurm-controller-0", "slurmctld", "grace"), PATIENCE)
    assert "Rejecting authentication of user nobody" in refusal(from_ldap, "grace")


def reached(slurm: SlurmInKubernetes) -> str:
    """Whether SSSD reaches the directory, as the Cluster's status has it; empty if that says nothing yet."""
    conditions = slurm.get("cluster", slurm.name).get("status", {}).get("conditions", ())
    return next((str(one["status"]) for one in conditions if one["type"] == "DirectoryReachable"), "")


def test_without_the_directory_slurm_serves_and_knows_whom_it_knew(from_ldap: SlurmInKubernetes) -> None:
    wait_for("ada", partial(knows, from_ldap, "slurm-controller-0", "slurmctld", "ada"), PATIENCE)
    wait_for("the directory in the status", lambda: reached(from_ldap) == "True", PATIENCE)
    before = identities(from_ldap)
    from_ldap.kube("delete", "pod", LDAP, "--wait")
    assert "ada" in submitted(from_ldap, "ada")
    wait_for("its absence in the status", lambda: reached(from_ldap) == "False", PATIENCE)
    away = from_ldap.condition("cluster", from_ldap.name, "DirectoryReachable")
    assert (away["reason"], "Backend is offline, domain site" in away["message"]) == ("DirectoryAway", True)
    assert from_ldap.condition("cluster", from_ldap.name, "Ready")["status"] == "True"
    assert from_ldap.condition("cluster", from_ldap.name, "Degraded")["status"] == "False"
    # A slurmctld that starts now knows nobody, but starts, and finds its users when the directory is back.
    uid = from_ldap.get("pod", "slurm-controller-0")["metadata"]["uid"]
    from_ldap.kube("delete", "pod", "slurm-controller-0", "--wait", timeout=PATIENCE)
    wait_for("another slurmctld", lambda: _uid_of_controller(from_ldap) not in {"", uid}, PATIENCE)
    wait_for("slurmctld answers", lambda: _answers(from_ldap), PATIENCE)
    from_ldap.kubectl.apply([server(from_ldap)])
    wait_for("ada again", partial(knows, from_ldap, "slurm-controller-0", "slurmctld", "ada"), PATIENCE)
    from_ldap.wait_idle(NODES)
    assert "ada" in submitted(from_ldap, "ada")
    wait_for("its return in the status", lambda: reached(from_ldap) == "True", PATIENCE)
    after = identities(from_ldap)
    assert {name: one for name, one in after.items() if name in NODES} == {
        name: one for name, one in before.items() if name in NODES
    }


def test_sssd_has_no_capability_and_the_daemons_stay_unprivileged(from_ldap: SlurmInKubernetes) -> None:
    pod = from_ldap.get("pod", "slurm-controller-0")
    (sidecar,) = pod["spec"]["initContainers"]
    assert sidecar["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
    status = from_ldap.kube("exec", "slurm-controller-0", "--container=sssd", "--", "cat", "/proc/1/status")
    assert "CapEff:\t0000000000000000" in status


@pytest.mark.full
def test_a_user_of_the_files_runs_a_job_on_two_nodes_in_a_home_of_the_claim(from_files: SlurmInKubernetes) -> None:
    make = "mkdir -p /home/alice && chown 1000:2001 /home/alice"
    from_files.kube("exec", "campus-0", "--container=slurmd", "--", "sh", "-c", make)
    shown = "uid=1000(alice) gid=2001(alice) groups=2001(alice),2100(lab)"
    assert submitted(from_files, "alice", "/home/alice") == [f"0: {shown}", f"1: {shown}", "alice"]
    # The same folder on the other node.
    assert from_files.kube("exec", "campus-1", "--container=slurmd", "--", "ls", "/home").split() == ["alice"]


@pytest.mark.full
def test_a_new_line_makes_a_user_and_a_bad_one_changes_nothing(from_files: SlurmInKubernetes) -> None:
    before = identities(from_files)
    from_files.kubectl.apply([people(from_files, f"{PASSWD}mallory:x:0:0::/root:/bin/sh\n")])
    from_files.wait_event("campus", "IdentityRefused", "passwd line 4: uid 0 is not from 1000")

    def is_told() -> bool:
        degraded = from_files.condition("cluster", "campus", "Degraded")
        return (degraded["status"], degraded["reason"]) == ("True", "IdentityRefused")

    wait_for("the condition", is_told, PATIENCE)
    from_files.kubectl.apply([people(from_files, f"{PASSWD}carol:x:2003:2002::/home/carol:/bin/bash\n")])
    for pod, container in (("campus-controller-0", "slurmctld"), ("campus-0", "slurmd")):
        wait_for(f"carol in {pod}", partial(knows, from_files, pod, container, "carol"), PATIENCE)
        assert "uid=1000(alice)" in identity(from_files, pod, container, "alice")
        assert identity(from_files, pod, container, "mallory") == ""
    wait_for(
        "no complaint", lambda: from_files.condition("cluster", "campus", "Degraded")["status"] == "False", PATIENCE
    )
    assert identities(from_files) == before


@pytest.mark.full
def test_removing_the_homes_replaces_the_pods_of_nodes_and_nothing_else(from_files: SlurmInKubernetes) -> None:
    before = identities(from_files)
    patch = json.dumps({"spec": {"identity": {"homes": None}}})
    from_files.kube("patch", "cluster", "campus", "--type=merge", f"--patch={patch}")
    for name in CAMPUS:
        uid = before[name][0]
        wait_for(f"another {name}", partial(from_files.is_replaced, name, uid), PATIENCE)
    from_files.wait_idle(CAMPUS)
    after = identities(from_files)
    assert {name for name, one in after.items() if before.get(name) == one} == before.keys() - set(CAMPUS)


@pytest.mark.full
def test_another_source_replaces_slurmctld_after_a_trial_and_nodes_without_ending_jobs(
    from_files: SlurmInKubernetes,
) -> None:
    uid = _uid_of_controller(from_files)
    job = from_files.hold("campus-0")
    source = {"passwd": None, "sssd": {"confRef": {"name": "nosuch"}}}
    patch = json.dumps({"spec": {"identity": source}})
    from_files.kube("patch", "cluster", "campus", "--type=merge", f"--patch={patch}")
    wait_for("another slurmctld", lambda: _uid_of_controller(from_files) not in {"", uid}, PATIENCE)
    wait_for("slurmctld answers", lambda: _answers(from_files), PATIENCE)
    from_files.wait_event("campus", "SecretNotFound", "there is no Secret nosuch")
    assert from_files.job_state(job) == "RUNNING"
    before = from_files.pod_uid("campus-0")
    from_files.release(job, "campus-0")
    from_files.wait_job(job, "COMPLETED")
    wait_for("another campus-0", partial(from_files.is_replaced, "campus-0", before), PATIENCE)
    from_files.wait_idle(CAMPUS)
    wait_for(
        "no copy that nobody mounts",
        lambda: all(one["metadata"]["name"] != "campus-users" for one in from_files.get("configmaps")["items"]),
        PATIENCE,
    )


def _uid_of_controller(slurm: SlurmInKubernetes) -> str:
    found = slurm.get("pods", "--selector=app.kubernetes.io/component=controller")["items"]
    return str(found[0]["metadata"]["uid"]) if found else ""


def _answers(slurm: SlurmInKubernetes) -> bool:
    try:
        return "UP" in slurm.control("scontrol", "ping")
    except KubectlFailed:
        return False
