"""NodeSets, login pods and SlurmJobs of a Slurm that others run: theirs is left alone, and no job is lost."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from hack.localkube.kubectl import wait_for
from slinky_api.labels import ANNOTATION_SECRET_SERVER
from tests.support.job_namespace import JobNamespace
from tests.support.pods import restarts
from tests.support.slurm_in_kubernetes import PATIENCE, NewSlurm, SlurmInKubernetes

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("operator"), pytest.mark.full]

SAMPLE = Path(__file__).parents[3] / "config" / "samples" / "more" / "cluster-external.yaml"
TOKEN, KEY = "elsewhere-token", "elsewhere-slurm-key"
"""Secrets of the sample."""

USERS = {"passwd": "alice:x:2001:2001::/tmp:/bin/sh\n"}

CONTROLLER = "slurm-controller-0"


@dataclass(frozen=True)
class Sites:
    """Two sites."""

    home: SlurmInKubernetes
    """Where slurmctld and slurmrestd run, with a node of its own."""
    away: SlurmInKubernetes
    """Where there are only nodes and login pods, and a Cluster with the addresses of the other."""
    controller: str
    """Unique identifier of slurmctld's pod."""


@pytest.fixture(scope="module")
def sites(new_slurm: NewSlurm) -> Sites:
    home, away = new_slurm("home"), new_slurm("away", "elsewhere")
    home.create(identity={"passwd": {"configMapRef": {"name": "users"}}})
    about = {"name": "users", "namespace": home.namespace}
    home.kubectl.apply([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": about, "data": USERS}])
    home.nodeset("near", 1)
    home.wait_ready()
    home.wait_idle(["near-0"])
    sample = yaml.safe_load(
        SAMPLE.read_text()
        .replace("slurmrestd.example.com", f"slurm-restapi.{home.namespace}.svc")
        .replace("slurmctld.example.com", f"{CONTROLLER}.slurm-controller.{home.namespace}.svc")
    )
    sample["metadata"]["namespace"] = away.namespace
    # The key is a set, as the operator has made it.
    sample["spec"]["auth"]["slurmKeyRef"]["key"] = "slurm.jwks"
    sample["spec"]["jobs"] = {"tenants": [{"namespaces": [away.namespace], "user": "alice"}]}
    key = home.get("secret", "slurm-auth-slurm")["data"]["slurm.jwks"]
    server = sample["spec"]["server"]
    away.kubectl.apply(
        [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": away.namespace}},
            secret(away, KEY, server, {"slurm.jwks": key}),
            sample,
        ]
    )
    give_token(away, server, token_of(home))
    away.wait_ready()
    away.nodeset("afar", 1)
    home.wait_idle(["near-0", "afar-0"])
    return Sites(home, away, home.get("pod", CONTROLLER)["metadata"]["uid"])


def secret(site: SlurmInKubernetes, name: str, server: str, data: dict[str, str]) -> dict[str, object]:
    metadata = {"name": name, "namespace": site.namespace, "annotations": {ANNOTATION_SECRET_SERVER: server}}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}


def token_of(home: SlurmInKubernetes) -> str:
    """A token as the comment of the sample has it made."""
    return home.control("scontrol", "token", "lifespan=86400").strip().removeprefix("SLURM_JWT=")


def give_token(away: SlurmInKubernetes, server: str, token: str) -> None:
    away.kubectl.apply([secret(away, TOKEN, server, {"auth-token": base64.b64encode(token.encode()).decode()})])


def test_nodes_are_drained_under_a_job_and_the_others_are_left_alone(sites: Sites) -> None:
    home, away = sites.home, sites.away
    away.scale("afar", 3)
    home.wait_idle(["near-0", "afar-0", "afar-1", "afar-2"])
    job = home.hold("afar-2", pod="near-0", partition="all")
    away.wait_seen("afar", readyReplicas=3)
    away.scale("afar", 0)
    home.wait_states({"near-0": "idle", "afar-2": "draining"})
    assert home.job_state(job) == "RUNNING"
    assert set(away.slurmd_pods()) == {"afar-2"}
    away.release(job, "afar-2")
    home.wait_job(job, "COMPLETED")
    home.wait_idle(["near-0"])
    wait_for("the last pod's end", lambda: not away.slurmd_pods(), PATIENCE)
    away.scale("afar", 1)
    home.wait_idle(["near-0", "afar-0"])


def test_users_submit_from_login_pods(sites: Sites) -> None:
    home, away = sites.home, sites.away
    away.kubectl.apply([away.object("LoginSet", "front", {"clusterName": away.name, "image": away.image("login")})])
    wait_for("login pods", lambda: away.condition("loginset", "front", "Ready")["status"] == "True", PATIENCE)

    def say(*words: str) -> str:
        return away.kube("exec", "deploy/front-login", "--", *words).strip()

    assert set(say("srun", "--partition=all", "--nodes=2", "hostname").split()) == {"near-0", "afar-0"}
    job = say("sbatch", "--parsable", "--partition=all", "--nodelist=afar-0", "--output=/dev/null", "--wrap=true")
    home.wait_job(job, "COMPLETED")


def test_jobs_as_objects_run_there_as_their_user(sites: Sites) -> None:
    jobs, home = JobNamespace(sites.away, sites.away.namespace), sites.home
    jobs.submit("hello", "#!/bin/sh\n#SBATCH --nodelist=near-0\n[ $(id -un) = alice ]\n", partition="all")
    done = jobs.wait("hello", state="Succeeded")
    # Not before: which of two gets the node first is nobody's promise.
    jobs.submit("long", "#!/bin/sh\n#SBATCH --nodelist=near-0\nsleep 600\n", partition="all")
    assert home.job(str(done["jobId"]))["UserId"].startswith("alice(")
    assert (done["user"], done["nodes"]) == ("alice", "near-0")
    job = str(jobs.wait("long", state="Running")["jobId"])
    jobs.kube("delete", "slurmjob", "long", timeout=PATIENCE)
    assert home.job_state(job) == "CANCELLED"


def test_without_an_answer_nothing_is_drained_or_deleted(sites: Sites) -> None:
    home, away = sites.home, sites.away
    server = away.get("cluster", away.name)["spec"]["server"]
    good = token_of(home)
    give_token(away, server, f"{good[:-8]}AAAAAAAA")

    def refused() -> bool:
        return bool(away.condition("cluster", away.name, "TokenValid")["status"] == "False")

    wait_for("the token is refused", refused, PATIENCE)
    away.scale("afar", 0)
    generation = away.get("nodeset", "afar")["metadata"]["generation"]

    def told() -> bool:
        seen = away.get("nodeset", "afar")["status"].get("observedGeneration") == generation
        return bool(seen and away.condition("nodeset", "afar", "Degraded")["status"] == "True")

    wait_for("the NodeSet says that it cannot", told, PATIENCE)
    assert set(away.slurmd_pods()) == {"afar-0"}
    assert home.states() == {"near-0": "idle", "afar-0": "idle"}
    jobs = JobNamespace(away, away.namespace)
    jobs.submit("later", "#!/bin/sh\n#SBATCH --nodelist=near-0\n", partition="all")
    wait_for("the job waits", lambda: jobs.condition("later", "Submitted")[1] == "SlurmUnreachable", PATIENCE)
    give_token(away, server, good)
    jobs.wait("later", state="Succeeded")
    home.wait_idle(["near-0"])
    wait_for("its pod's end", lambda: not away.slurmd_pods(), PATIENCE)


def test_the_slurmctld_of_the_others_has_never_been_touched(sites: Sites) -> None:
    home, away = sites.home, sites.away
    away.kube("delete", "loginsets.slinky.slurm.net/front", "nodesets.slinky.slurm.net/afar", "--wait=false")
    away.kube("delete", "clusters.slinky.slurm.net", away.name)
    pod = home.get("pod", CONTROLLER)
    assert (pod["metadata"]["uid"], restarts(pod)) == (sites.controller, 0)
    home.wait_idle(["near-0"])
    home.wait_job(home.submit("--partition=all", seconds=0, pod="near-0"), "COMPLETED")
