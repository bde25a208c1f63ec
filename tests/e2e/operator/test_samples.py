"""Every sample, unchanged, applied as a user does, up to the result that the user would see."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from hack.installing.operator import Installation
from hack.localkube.kubectl import Kubectl, wait_for
from hack.localkube.paths import PROJECT
from hack.localkube.programs import build, debian
from tests.support.documents import WHOLE_SITE
from tests.support.logins import Visitor
from tests.support.reader import Reader
from tests.support.shell import Shell
from tests.support.slurm_in_kubernetes import PATIENCE, SlurmInKubernetes, fresh_namespace

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("operator"), pytest.mark.long(170)]

SAMPLES = PROJECT / "config" / "samples"

Apply = Callable[..., SlurmInKubernetes]


@dataclass(frozen=True, slots=True)
class Site:
    """The site of a page, and who has read the page."""

    slurm: SlurmInKubernetes
    reader: Reader


@pytest.fixture
def apply(kubectl: Kubectl, operator: Installation) -> Iterator[Apply]:
    """Applies files of samples in a namespace of their own; what they ask for is small enough for these Nodes."""
    made: list[SlurmInKubernetes] = []

    def applied(name: str, *files: str) -> SlurmInKubernetes:
        instance = SlurmInKubernetes(kubectl, fresh_namespace("samples"), "26.05", name)
        kubectl("create", "namespace", instance.namespace)
        made.append(instance)
        for file in files:
            instance.kube("apply", f"--filename={SAMPLES / file}")
        return instance

    yield applied
    for one in made:
        one.abandon()


def said(slurm: SlurmInKubernetes, kind: str, name: str, condition: str, reason: str, word: str = "") -> None:
    """Wait for a condition of this reason, with this word in its message."""

    def found() -> bool:
        shown = slurm.condition(kind, name, condition)
        return bool(shown["reason"] == reason and word in shown["message"])

    wait_for(f"{kind} {name}: {condition} {reason} {word}", found, PATIENCE)


def test_each_file_is_applied_here() -> None:
    here = {"cluster.yaml", "nodeset-compute.yaml", "nodeset-burst.yaml", "loginset.yaml", "more/cluster-full.yaml"}
    here |= {
        "whole-site.yaml",
        "more/cluster-external.yaml",
        "more/cluster-sssd.yaml",
        "more/token.yaml",
        "slinky/0.1.yaml",
        "slinky/0.3.yaml",
    }
    # The API server takes it in the integration tests; test_accounting has such a Cluster.
    here.add("more/accounting.yaml")
    # In test_identity.
    here.add("more/cluster-passwd.yaml")
    # Its tree goes to a model of slurmdbd in the unit tests of accounts.
    here.add("more/cluster-accounts.yaml")
    # A real slurmd runs its scripts in the integration tests; there are no GPUs here.
    here.add("more/gpu-jobs.yaml")
    # Its server and followers are real processes in the integration tests of joblogs, with jobs of real slurmds.
    here.add("more/nodeset-job-logs.yaml")
    assert {str(path.relative_to(SAMPLES)) for path in SAMPLES.rglob("*.yaml")} == here


def test_the_first_samples_become_a_cluster_that_runs_jobs(apply: Apply) -> None:
    slurm = apply("slurm", "cluster.yaml", "nodeset-compute.yaml", "nodeset-burst.yaml", "more/token.yaml")
    slurm.wait_ready()
    slurm.wait_idle_nodes("compute-0", "compute-1", "burst-0")
    assert slurm.run("srun", "hostname").strip() in {"compute-0", "compute-1"}
    assert slurm.run("srun", "-p", "burst", "hostname").strip() == "burst-0"
    said(slurm, "token", "portal", "Ready", "AsExpected", "token of nobody")


@pytest.mark.full
def test_login_pods_ask_for_the_keys_of_their_users(apply: Apply) -> None:
    slurm = apply("slurm", "cluster.yaml", "loginset.yaml")
    said(slurm, "loginset", "front", "Degraded", "SecretNotFound", "login-keys")
    slurm.kube("create", "secret", "generic", "login-keys", "--from-literal=user=ssh-ed25519 AAAA somebody")
    said(slurm, "loginset", "front", "Ready", "AsExpected")


@pytest.mark.full
def test_a_cluster_that_says_more_about_itself_is_ready_with_the_configmaps_it_names(apply: Apply) -> None:
    slurm = apply("lab", "more/cluster-full.yaml")
    said(slurm, "cluster", "lab", "ConfigApplied", "ConfigSourceNotFound", "lab-topology")
    switch = "--from-literal=topology.conf=SwitchName=s0 Nodes=metal[01-04]"
    slurm.kube("create", "configmap", "lab-topology", switch)
    slurm.wait_ready()
    assert {"metal01", "metal02", "metal03", "metal04"} <= slurm.states().keys()
    assert slurm.condition("cluster", "lab", "Degraded")["status"] == "False"


@pytest.mark.full
def test_a_cluster_elsewhere_asks_for_its_token(apply: Apply) -> None:
    slurm = apply("elsewhere", "more/cluster-external.yaml")
    said(slurm, "cluster", "elsewhere", "TokenValid", "SecretNotFound", "elsewhere-token")


@pytest.mark.full
def test_a_cluster_with_users_of_a_directory_serves_without_its_secret_and_asks_for_it(apply: Apply) -> None:
    slurm = apply("site", "more/cluster-sssd.yaml")
    said(slurm, "cluster", "site", "Degraded", "SecretNotFound", "directory")
    slurm.wait_ready()
    slurm.wait_idle_nodes("site-0", "site-1")
    assert sorted(slurm.run("srun", "-N2", "hostname", pod="site-0").split()) == ["site-0", "site-1"]


@pytest.mark.full
def test_manifests_of_slinky_say_what_they_lack_here(apply: Apply) -> None:
    slurm = apply("legacy", "slinky/0.1.yaml", "slinky/0.3.yaml")
    said(slurm, "cluster", "legacy", "TokenValid", "SecretNotFound", "legacy-token-slurm")
    said(slurm, "nodeset", "slurm-compute-debug", "SlurmReachable", "ClusterNotFound")
    said(slurm, "nodeset", "legacy-compute", "SlurmReachable", "ClusterNotReady")


@pytest.fixture(scope="module")
def site(kubectl: Kubectl, operator: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The whole site of the README, made by its commands and with what they show, in a namespace of its own."""
    slurm = SlurmInKubernetes(kubectl, fresh_namespace("samples"), "26.05", "hpc")
    folder, notes = (tmp_path_factory.mktemp(name) for name in ("repository", "notes"))
    debian.ensure({"ssh": "openssh-client"})
    (folder / "config").symlink_to(PROJECT / "config")
    environment = {
        "PATH": f"{build.tool('kubectl').parent}:{os.environ['PATH']}",
        "KUBECONFIG": str(kubectl.kubeconfig),
        "HOME": str(folder),
    }
    kubectl("create", "namespace", slurm.namespace)
    try:
        with Shell(folder, notes, environment) as shell:
            reader = Reader(folder, shell, {"hpc": slurm.namespace})
            reader.follow("README.md", WHOLE_SITE)
            yield Site(slurm, reader)
    finally:
        slurm.abandon()


@pytest.mark.full
def test_a_whole_site_is_one_page(site: Site) -> None:
    """After the output of a first job: what else the site has."""
    slurm, folder = site.slurm, site.reader.folder
    (folder / "key").symlink_to(folder / "alice.key")
    alice = Visitor(slurm, folder, "alice")
    said(slurm, "cluster", "hpc", "AccountingReady", "AsExpected")
    said(slurm, "token", "alices-portal", "Ready", "AsExpected", "token of alice")
    slurm.wait_idle_nodes("cpu-0", "cpu-1", "short-0")
    wait_for("a way to the pod", lambda: alice.attempt("true", checked="accept-new").returncode == 0, PATIENCE)
    lines = alice.say("srun --label -N2 -n2 id").splitlines()
    who = "uid=2001(alice) gid=2100(lab) groups=2100(lab)"
    assert sorted(lines) == [f"0: {who}", f"1: {who}"]
    assert alice.say("stat -c '%U %a %n' ~; ls slurm-*") == "alice 700 /home/alice\nslurm-1.out\n"
    # Without a login either: bob has none, and a program submits for him.
    job = "sbatch --parsable --wait --chdir=/home/bob --output=out --wrap 'id -un'"
    as_bob = ("setpriv", "--reuid=2002", "--regid=2100", "--clear-groups", "sh", "-c", f"cd / && {job}")
    slurm.kube("exec", f"deployment/{alice.deployment}", "--container=login", "--", *as_bob)
    assert slurm.run("cat", "/home/bob/out", pod="short-0") == "bob\n"
    recorded = "sacct --allusers --allocations --noheader --parsable2 --format=user,state"
    wait_for("the record of the job", lambda: "alice|COMPLETED" in alice.say(recorded), PATIENCE)


@pytest.mark.full
def test_a_user_is_added_to_the_site_and_taken_out_again(site: Site) -> None:
    site.reader.follow("docs/add-a-user.md")
