"""The user documentation, executed as written: its commands in order, and the output it shows.

The pages share one installation, as they do for their readers: install.md begins and ends it, the others come in
between. So these tests run in this order, on a Kubernetes that has neither the operator nor its CRDs at the start.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest

from hack.installing.operator import RELEASE, Installation
from hack.localkube.cluster import Cluster
from hack.localkube.kubectl import Kubectl, wait_for
from hack.localkube.paths import PROJECT
from hack.localkube.programs import build
from tests.support.documents import RUNNING, WHOLE_SITE, Action, blocks
from tests.support.reader import Reader
from tests.support.served import CRDS
from tests.support.shell import Shell
from tests.support.slurm_in_kubernetes import PATIENCE

pytestmark = [pytest.mark.timeout(1500), pytest.mark.alone, pytest.mark.long(260)]

README, INSTALL, FIRST_JOB = "README.md", "docs/install.md", "docs/first-job.md"
QUICK_START = "docs/quick-start.md"
NODES, CONFIGURATION, TOKENS = "docs/kubernetes-nodes.md", "docs/configuration.md", "docs/tokens.md"
LOGIN, IDENTITY = "docs/login.md", "docs/identity.md"
PAGES = (README, QUICK_START, INSTALL, FIRST_JOB, NODES, CONFIGURATION, TOKENS, LOGIN, IDENTITY)

KINDS = ",".join(sorted(CRDS, reverse=True))
FINALIZER_IS_BACK = """
until kubectl -n slurm get nodesets.slinky.slurm.net compute -o jsonpath='{.metadata.finalizers}' |
  grep slurm.net/drain; do
  sleep 0.2
done
"""

NAMESPACES = ("slurm", "lab", "site", "examples", "my-operator", "team-a", "team-b", "web")
"""Those that the pages create, but for the operator's own."""


@pytest.fixture(scope="module")
def bare(kubectl: Kubectl, operator: Installation) -> Iterator[Kubectl]:
    """Kubernetes without the operator, which comes back at the end as other tests know it."""

    def is_empty() -> bool:
        return not kubectl.get(KINDS, "--all-namespaces")["items"]

    wait_for("the end of what other tests have left", is_empty, 2 * PATIENCE)
    try:
        operator.helm("uninstall", RELEASE, "--wait")
        kubectl("delete", "crd", *KINDS.split(","))
        yield kubectl
    finally:
        try:
            operator.helm("uninstall", RELEASE, "--ignore-not-found", "--wait")
            for folder in ("manager", "rbac"):
                kubectl("delete", "-k", str(PROJECT / "config" / folder), "--ignore-not-found")
        finally:
            # Whatever could not be removed: later modules need it.
            operator.install()
        kubectl("delete", "namespace", *NAMESPACES, "--ignore-not-found", "--wait=false")


@pytest.fixture(scope="module")
def reader(bare: Kubectl, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """A reader at the root of the repository, with kubectl and helm."""
    folder, notes, programs = (tmp_path_factory.mktemp(name) for name in ("repository", "notes", "programs"))
    for name in ("config", "helm"):
        shutil.copytree(PROJECT / name, folder / name)
    for name in ("kubectl", "helm"):
        (programs / name).symlink_to(build.tool(name))
    environment = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "HOME": str(notes),
        "KUBECONFIG": str(bare.kubeconfig),
        "KUBECACHEDIR": str(notes / "kubectl-cache"),
    }
    with Shell(folder, notes, environment) as shell:
        yield Reader(folder, shell)


def test_the_operator_is_installed_and_runs_a_cluster(reader: Reader) -> None:
    reader.follow(INSTALL, "Install")


def test_first_jobs_run(reader: Reader) -> None:
    reader.follow(README, "A first job")
    reader.follow(FIRST_JOB)


def test_the_quick_start_ends_with_a_job(reader: Reader) -> None:
    """What it installs is there already, by the same commands of install.md, and has had the time of first jobs."""
    reader.follow(QUICK_START)


def test_nodes_of_kubernetes_and_of_slurm_go_together(reader: Reader) -> None:
    reader.follow(NODES)


def test_a_site_configures_slurm(reader: Reader) -> None:
    reader.follow(CONFIGURATION)


def test_users_log_in(reader: Reader) -> None:
    reader.follow(LOGIN)
    reader.follow(IDENTITY)
    # Nothing is left that has to be gone before the CRDs are.
    reader.shell.run("kubectl delete loginsets.slinky.slurm.net --all --all-namespaces", "what it has made", PATIENCE)


def test_programs_get_tokens(reader: Reader) -> None:
    reader.follow(TOKENS)
    # Nothing is left that has to be gone before the CRDs are.
    reader.shell.run("kubectl delete tokens.slinky.slurm.net --all --all-namespaces", "what it has made", PATIENCE)


def test_the_operator_is_looked_after(reader: Reader) -> None:
    reader.follow(INSTALL, "When something is wrong", "Secrets for a Slurm that runs elsewhere")
    reader.follow(INSTALL, "For some namespaces only", "Upgrade")


def test_everything_is_removed(reader: Reader) -> None:
    reader.shell.run("helm uninstall lab --namespace lab", "what is in another namespace", PATIENCE)
    reader.shell.run("kubectl delete namespace site", "what configuration.md has made", PATIENCE)
    reader.shell.run("helm uninstall slurm-operator --namespace my-operator", "the second operator", PATIENCE)
    reader.follow(INSTALL, "When you cannot wait", "When the operator will never come back")
    # There is an operator, which wants its finalizer back; until then a NodeSet goes at once and its pods stay.
    reader.shell.run(FINALIZER_IS_BACK, "what was done with an operator at work", PATIENCE)
    reader.follow(INSTALL, "Uninstall")


def test_the_operator_is_installed_without_helm(reader: Reader) -> None:
    reader.follow(INSTALL, "Without helm")


def test_every_block_has_been_followed(reader: Reader) -> None:
    marked = {
        block.place: block
        for page in PAGES
        for block in blocks(page)
        if (block.action is Action.FILE or (block.action in RUNNING and block.language == "sh"))
        and (page, block.heading) != (README, WHOLE_SITE)
    }
    assert reader.done == marked.keys()
