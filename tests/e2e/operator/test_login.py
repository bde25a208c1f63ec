"""Users log in by SSH and submit; a session ends when its user ends it, or its grace time, and not before."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from hack.localkube.kubectl import wait_for
from tests.support.configuring import wait_live
from tests.support.logins import PODS, Visitor, keys_of_users, visitor
from tests.support.slurm_in_kubernetes import PATIENCE, NewSlurm, SlurmInKubernetes

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("operator")]


def entry(slurm: SlurmInKubernetes, **more: Any) -> dict[str, Any]:
    """The set of login pods in the Cluster's spec."""
    return {
        "name": "front",
        "image": slurm.image("login"),
        "authorizedKeysRef": {"name": "people"},
        "sessionGracePeriod": "20m",
        **more,
    }


def change(slurm: SlurmInKubernetes, cluster: dict[str, Any] | None = None, **more: Any) -> None:
    """Change the Cluster's entry, and other fields of the Cluster."""
    images = {"controller": {"image": slurm.image("slurmctld")}, "restapi": {"image": slurm.image("slurmrestd")}}
    spec = {**images, **(cluster or {}), "login": [entry(slurm, **more)]}
    slurm.kubectl.apply([slurm.object("Cluster", slurm.name, spec)])


@pytest.fixture(scope="module")
def site(new_slurm: NewSlurm, tmp_path_factory: pytest.TempPathFactory) -> Visitor:
    """A Cluster with two nodes and a set of login pods, and somebody who has a key."""
    slurm = new_slurm("login")
    found = visitor(slurm, tmp_path_factory.mktemp("login"), "user")
    slurm.create(login=[entry(slurm)])
    slurm.nodeset("compute", 2, partition={"config": "Default=YES"})
    slurm.kubectl.apply([keys_of_users(slurm, user=found.public_key)])
    slurm.wait_ready()
    slurm.wait_idle(["compute-0", "compute-1"])
    found.wait_ready()
    found.say("true", checked="accept-new")
    return found


def test_a_user_submits_from_a_session(site: Visitor) -> None:
    assert site.say("id -un; srun -N2 id -u").split() == ["user", "1000", "1000"]
    assert "Submitted batch job" in site.say("sbatch --wait --output=/tmp/%j --wrap true")
    assert "compute-" in site.say("salloc -Q -N1 srun hostname")
    # On a terminal, which the command on the node has too.
    assert "/dev/pts/" in site.say("salloc -Q -N1 srun --pty tty", "-tt")
    assert site.say("command -v ssh scp").split() == ["/usr/bin/ssh", "/usr/bin/scp"]
    assert site.slurm.kube("exec", f"deploy/{site.deployment}", "--", "srun", "id", "-u").strip() == "0"


def test_slurmctld_finds_the_hosts_of_sruns_that_are_cancelled(site: Visitor) -> None:
    slurm = site.slurm
    runs = "until squeue --steps -h -o %j | grep -qx {}; do sleep 0.2; done; scancel -n {}"
    in_a_session = f"srun -J goes -N2 sleep 600 & {runs.format('goes', 'goes')}; wait"
    in_a_script = f"sbatch -J script -o /dev/null --wrap 'srun -J inside sleep 600'; {runs.format('inside', 'script')}"
    said = site.say(f"{in_a_session}; {in_a_script}; sbatch --parsable -o /dev/null --wrap true")
    # The log has all before a line once it has that.
    log, last = "", f"_slurm_rpc_submit_batch_job: JobId={said.split()[-1]} "

    def has_come() -> bool:
        nonlocal log
        log = slurm.kube("logs", f"{slurm.name}-controller-0", "--container=slurmctld", "--tail=-1")
        return last in log

    wait_for("the log of the submission", has_come, PATIENCE)
    assert "Unable to resolve" not in log
    assert "getaddrinfo" not in log


def test_users_reach_neither_the_key_nor_the_socket(site: Visitor) -> None:
    found = site.say("ls /etc/slurm; cat /etc/slurm-login/host-keys/*_key; touch /run/slurm/x || echo refused")
    assert found.splitlines()[-1] == "refused"
    assert "PRIVATE" not in found
    assert not any(name in found for name in ("slurm.key", "slurm.jwks"))


def test_a_refused_line_is_named_and_changes_no_pod(site: Visitor) -> None:
    slurm, before = site.slurm, site.pods().keys()
    change(slurm, extraSshdConfig="MaxSessions 5\nNonsense yes\n")

    def refused() -> bool:
        found = slurm.condition("loginset", site.loginset, "SshdConfigApplied")
        return found["reason"] == "SshdConfigRefused" and "line 2 (Nonsense yes): Bad config" in found["message"]

    wait_for("the refusal", refused, PATIENCE)
    slurm.wait_event(site.loginset, "SshdConfigRefused", "Nonsense")
    assert site.say("id -un").strip() == "user"
    assert site.pods().keys() == before


@pytest.mark.full
def test_a_session_outlives_changes_of_sshds_and_slurms_configuration(site: Visitor) -> None:
    slurm, before, looks = site.slurm, site.pods().keys(), itertools.count()

    def read() -> bool:
        # Whatever it is, a new annotation makes the kubelet look at once.
        slurm.kube("annotate", "--overwrite", "pods", PODS, f"look={next(looks)}")
        found = slurm.kube("exec", f"deploy/{site.deployment}", "--", "cat", "/run/slurm-login/sshd_config")
        return "MaxSessions 7" in found

    with site.session("changes"):
        change(slurm, {"extraConf": "PriorityDecayHalfLife=3-0"}, extraSshdConfig="MaxSessions 7\n")
        # srun asks once: a slurmctld that is just reading its files may have no answer.
        wait_live(slurm, slurm.get("cluster", slurm.name)["metadata"]["generation"])
        wait_for("the new configuration in the pod", read, PATIENCE)
        assert site.say("id -un").strip() == "user"
    assert site.pods().keys() == before


@pytest.mark.full
def test_another_pod_has_the_same_host_key(site: Visitor) -> None:
    slurm, before = site.slurm, site.pods().keys()
    slurm.kube("delete", "pods", PODS, "--wait=false")
    wait_for("another pod", lambda: bool(site.pods()) and not site.pods().keys() & before, PATIENCE)
    site.wait_ready()
    assert site.say("srun id -u").strip() == "1000"


def sshd_crashes(site: Visitor) -> None:
    """Kill the sshd that listens, and wait for another; sessions that it has accepted go on."""

    def listens() -> str:
        return site.slurm.kube("exec", f"deploy/{site.deployment}", "--", "cat", "/run/sshd.pid")

    before = listens()
    site.slurm.kube("exec", f"deploy/{site.deployment}", "--", "kill", "-9", before.strip())
    wait_for("another sshd", lambda: listens() != before, PATIENCE)


def test_a_pod_that_is_scaled_in_waits_for_its_session_also_of_an_sshd_that_crashed(site: Visitor) -> None:
    slurm = site.slurm
    with site.session("scaled") as shown:
        sshd_crashes(site)
        slurm.kube("scale", f"loginset/{site.loginset}", "--replicas=0")
        wait_for("the note", lambda: "is being removed. Sessions here end at" in shown.read_text(), PATIENCE)
    # Without sessions it waits no longer.
    wait_for("the end of the pod", lambda: not site.pods(), PATIENCE)
    # The Cluster's entry names no number, and takes none back.
    change(slurm)
    slurm.kube("scale", f"loginset/{site.loginset}", "--replicas=2")
    site.wait_ready()
    wait_for("two pods", lambda: len(site.pods()) == 2, PATIENCE)


def test_an_entry_that_goes_takes_its_pods_with_it(site: Visitor) -> None:
    slurm = site.slurm
    slurm.kube("patch", "cluster", slurm.name, "--type=merge", '--patch={"spec": {"login": []}}')
    wait_for("no login pods", lambda: not site.pods() and not slurm.get("loginsets")["items"], PATIENCE)
