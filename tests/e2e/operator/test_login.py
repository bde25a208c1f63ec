"""Users log in by SSH and submit; a session ends when its user ends it, or its grace time, and not before."""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hack.localkube.kubectl import wait_for
from hack.localkube.programs import debian
from slinky_operator.loginset.sshd_config import PORT
from tests.support.port_forward import port_forward
from tests.support.slurm_in_kubernetes import PATIENCE, NewSlurm, SlurmInKubernetes

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("operator")]

LOGIN_SET = "slurm-front"
DEPLOYMENT = "slurm-front-login"
PODS = "--selector=app.kubernetes.io/component=login"


@dataclass(frozen=True, slots=True)
class Site:
    """A Cluster with login pods, and somebody who has a key."""

    slurm: SlurmInKubernetes
    folder: Path

    def ssh(self, port: int, *options: str) -> list[str]:
        """The command for a session with the pod behind a local port."""
        known = (f"UserKnownHostsFile={self.folder}/known", "HostKeyAlias=front", "BatchMode=yes", *options)
        words = [word for one in known for word in ("-o", one)]
        return ["ssh", "-F", "none", "-i", str(self.folder / "key"), *words, "-p", str(port), "user@127.0.0.1"]

    def say(self, command: str, checked: str = "yes") -> str:
        """Run a command in a session of its own; the host key has to be the known one."""
        with port_forward(self.slurm.kubectl, self.slurm.namespace, f"deployment/{DEPLOYMENT}", PORT) as port:
            words = [*self.ssh(port, f"StrictHostKeyChecking={checked}"), command]
            run = subprocess.run(words, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        if run.returncode:
            raise AssertionError(f"{command}: {run.stdout}{run.stderr}")
        return run.stdout

    @contextmanager
    def session(self, name: str) -> Iterator[Path]:
        """Hold a session on a terminal, which starts a job before it ends; yields the file with what it shows."""
        shown = self.folder / name
        loop = f"echo begun; until [ -e /tmp/end-{name} ]; do sleep 0.5; done; srun hostname; echo over"
        (pod,) = (str(one["metadata"]["name"]) for one in login_pods(self.slurm).values())
        place = self.slurm.kubectl, self.slurm.namespace, f"pod/{pod}"
        with port_forward(*place, PORT) as port, shown.open("w") as out:
            words = [*self.ssh(port, "StrictHostKeyChecking=yes"), "-tt", loop]
            process = subprocess.Popen(words, stdout=out, stderr=out, stdin=subprocess.PIPE)
            try:
                wait_for(f"session {name}", lambda: "begun" in shown.read_text(), PATIENCE)
                yield shown
                assert "over" not in shown.read_text()
                self.slurm.kube("exec", pod, "--container=login", "--", "touch", f"/tmp/end-{name}")
                wait_for(f"the end of session {name}", lambda: "over" in shown.read_text(), PATIENCE)
                assert "compute-" in shown.read_text()
            finally:
                process.terminate()
                process.communicate()


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


def login_pods(slurm: SlurmInKubernetes) -> dict[str, dict[str, Any]]:
    """Login pods by uid, those that are being removed too."""
    return {str(one["metadata"]["uid"]): one for one in slurm.get("pods", PODS)["items"]}


def wait_login_ready(slurm: SlurmInKubernetes) -> None:
    """Wait until the login pods are as the spec asks."""

    def ready() -> bool:
        found = slurm.get("loginset", LOGIN_SET)
        seen: bool = found.get("status", {}).get("observedGeneration") == found["metadata"]["generation"]
        return seen and slurm.condition("loginset", LOGIN_SET, "Ready")["status"] == "True"

    wait_for("login pods", ready, PATIENCE)


@pytest.fixture(scope="module")
def site(new_slurm: NewSlurm, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A Cluster with two nodes and a set of login pods."""
    debian.ensure({"ssh": "openssh-client"})
    folder = tmp_path_factory.mktemp("login")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "key")], check=True)
    slurm = new_slurm("login")
    slurm.create(login=[entry(slurm)])
    slurm.nodeset("compute", 2, partition={"config": "Default=YES"})
    people = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "people", "namespace": slurm.namespace},
        "stringData": {"user": (folder / "key.pub").read_text()},
    }
    slurm.kubectl.apply([people])
    slurm.wait_ready()
    slurm.wait_idle(["compute-0", "compute-1"])
    wait_login_ready(slurm)
    found = Site(slurm, folder)
    found.say("true", checked="accept-new")
    return found


def test_a_user_submits_from_a_session(site: Site) -> None:
    assert site.say("id -un; srun -N2 id -u").split() == ["user", "1000", "1000"]
    assert "Submitted batch job" in site.say("sbatch --wait --output=/tmp/%j --wrap true")
    assert "compute-" in site.say("salloc -Q -N1 srun hostname")
    assert site.slurm.kube("exec", f"deploy/{DEPLOYMENT}", "--", "srun", "id", "-u").strip() == "0"


def test_users_reach_neither_the_key_nor_the_socket(site: Site) -> None:
    found = site.say("ls /etc/slurm; cat /etc/slurm-login/host-keys/*_key; touch /run/slurm/x || echo refused")
    assert found.splitlines()[-1] == "refused"
    assert "PRIVATE" not in found
    assert "slurm.key" not in found


def test_a_refused_line_is_named_and_changes_no_pod(site: Site) -> None:
    slurm, before = site.slurm, login_pods(site.slurm).keys()
    change(slurm, extraSshdConfig="MaxSessions 5\nNonsense yes\n")

    def refused() -> bool:
        found = slurm.condition("loginset", LOGIN_SET, "SshdConfigApplied")
        return found["reason"] == "SshdConfigRefused" and "line 2 (Nonsense yes): Bad config" in found["message"]

    wait_for("the refusal", refused, PATIENCE)
    slurm.wait_event(LOGIN_SET, "SshdConfigRefused", "Nonsense")
    assert site.say("id -un").strip() == "user"
    assert login_pods(slurm).keys() == before


def test_a_session_outlives_changes_of_sshds_and_slurms_configuration(site: Site) -> None:
    slurm, before, looks = site.slurm, login_pods(site.slurm).keys(), itertools.count()

    def read() -> bool:
        # Whatever it is, a new annotation makes the kubelet look at once.
        slurm.kube("annotate", "--overwrite", "pods", PODS, f"look={next(looks)}")
        found = slurm.kube("exec", f"deploy/{DEPLOYMENT}", "--", "cat", "/run/slurm-login/sshd_config")
        return "MaxSessions 7" in found

    with site.session("changes"):
        change(slurm, {"extraConf": "PriorityDecayHalfLife=3-0"}, extraSshdConfig="MaxSessions 7\n")
        slurm.wait_ready()
        wait_for("the new configuration in the pod", read, PATIENCE)
        assert site.say("id -un").strip() == "user"
    assert login_pods(slurm).keys() == before


def test_another_pod_has_the_same_host_key(site: Site) -> None:
    slurm, before = site.slurm, login_pods(site.slurm).keys()
    slurm.kube("delete", "pods", PODS, "--wait=false")
    wait_for("another pod", lambda: bool(login_pods(slurm)) and not login_pods(slurm).keys() & before, PATIENCE)
    wait_login_ready(slurm)
    assert site.say("srun id -u").strip() == "1000"


def test_a_pod_that_is_scaled_in_waits_for_its_session(site: Site) -> None:
    slurm = site.slurm
    with site.session("scaled") as shown:
        slurm.kube("scale", f"loginset/{LOGIN_SET}", "--replicas=0")
        wait_for("the note", lambda: "is being removed. Sessions here end at" in shown.read_text(), PATIENCE)
    # Without sessions it waits no longer.
    wait_for("the end of the pod", lambda: not login_pods(slurm), PATIENCE)
    # The Cluster's entry names no number, and takes none back.
    change(slurm)
    slurm.kube("scale", f"loginset/{LOGIN_SET}", "--replicas=2")
    wait_login_ready(slurm)
    wait_for("two pods", lambda: len(login_pods(slurm)) == 2, PATIENCE)


def test_an_entry_that_goes_takes_its_pods_with_it(site: Site) -> None:
    slurm = site.slurm
    slurm.kube("patch", "cluster", slurm.name, "--type=merge", '--patch={"spec": {"login": []}}')
    wait_for("no login pods", lambda: not login_pods(slurm) and not slurm.get("loginsets")["items"], PATIENCE)
