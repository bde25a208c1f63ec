"""The message of a NodeSet that names a Cluster which does not exist: with the manifest to add. Pure.

Manifests are published without the Cluster they belong to. Slinky's charts name slurmrestd and the Secret with its
token after the release, as they do slurmctld, so one of their NodeSets shows what its Cluster must contain.
"""

from __future__ import annotations

import re
from typing import Final

from slinky_api.v1alpha1.common import GROUP, VERSION
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.nodeset.model.pods.pod_facts import SLURMD
from slinky_operator.slurm.pod_templates.shapes import POD_TEMPLATE, misfits
from slinky_operator.slurm.slurmd import launch

_RELEASE: Final = re.compile(r"([a-z0-9](?:[-a-z0-9]*[a-z0-9])?)-controller(?:\.[-a-z0-9.]+)?(?::[0-9]+)?")


def message(nodeset: NodeSet) -> str:
    """Say which Cluster is missing, and show one to apply.

    If Slurm runs already, the Cluster says where; without `spec` the operator runs Slurm.
    """
    name, namespace = nodeset.spec.cluster_name, nodeset.namespace
    started = _launch(nodeset)
    release = _release(started)
    server = f"http://{release}-restapi.{namespace}:6820" if release else "http://SLURMRESTD:6820"
    secret = f"{release}-token-slurm" if release else "SECRET"
    manifest = [
        f"apiVersion: {GROUP}/{VERSION}",
        "kind: Cluster",
        "metadata:",
        f"  name: {name}",
        f"  namespace: {namespace}",
        "spec:",
        f"  server: {server}",
        "  token:",
        f"    secretRef: {secret}",
    ]
    fill = "" if release else ", with the address of slurmrestd and the Secret that has a token of Slurm's"
    if not started.names_conf_server:
        # Without it slurmd would not know where slurmctld is: the template does not name it either.
        manifest += ["  controller:", "    external:", "      host: SLURMCTLD"]
    told = f"there is no Cluster {name} in namespace {namespace}. If Slurm runs already, apply this Cluster{fill};"
    return "\n".join([f"{told} for a Slurm that the operator is to run, leave out spec:", *manifest])


def _launch(nodeset: NodeSet) -> launch.Launch:
    template = nodeset.spec.template or {}
    if next(misfits(template, POD_TEMPLATE), None) is not None:
        return launch.Launch(())
    containers = (template.get("spec") or {}).get("containers") or ()
    return launch.read(next((item for item in containers if item.get("name") == SLURMD), {}))


def _release(started: launch.Launch) -> str:
    """Name of the release of Slinky's chart, from the slurmctld in slurmd's arguments; empty if there is none."""
    words = iter(started.arguments)
    for word in words:
        option, _, value = word.partition("=")
        if option == launch.CONF_SERVER:
            found = _RELEASE.fullmatch(value or next(words, ""))
            return found[1] if found is not None else ""
    return ""
