"""The hash that shows whether a pod matches its NodeSet's spec, and the part of the spec that it covers.

Which revision is wanted and which was before, `Revision`, is in `revision_records`.

It covers what the user wrote, also the Cluster's source of users and home folders, and a generator version that is
raised on purpose. The operator's own defaults are not in it: a new release, or another default image, replaces no pod.
Fields that are not set do not change it, so a field added by a later release changes no hash either.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.common import Resources
from slinky_api.v1alpha1.nodeset.checks import BuiltInCheck, Check
from slinky_api.v1alpha1.nodeset.health import Health
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_api.v1alpha1.nodeset.spec import Confinement, ContainerJobs, JobLogs, Ssh
from slinky_operator.identity import pod as identity
from slinky_operator.nodeset.model import claims

GENERATOR: Final = 1
"""Raised when pods created by older releases must be replaced; every NodeSet is then updated."""

_LENGTH: Final = 10

_ANY_CHECK: Final = Check(name="none", use=BuiltInCheck.DISK)
"""Stands for checks that a NodeSet had."""

Content = Mapping[str, Any]
"""The part of a spec that a pod is created from, with the API's field names; fields that are not set are absent."""


def content(nodeset: NodeSet, cluster: Cluster | None = None) -> Content:
    """Everything in the spec that a pod is created from, and in that of its Cluster."""
    spec = nodeset.spec
    resources = spec.resources
    given = {
        "template": spec.template,
        "image": spec.image,
        "resources": resources.model_dump(mode="json", by_alias=True, exclude_unset=True) if resources else None,
        "features": list(spec.features),
        "gres": spec.gres,
        "weight": spec.weight,
        "extraConf": spec.extra_conf,
        "confinement": "" if spec.confinement is Confinement.NONE else spec.confinement.value,
        "containers": "" if spec.containers is ContainerJobs.NONE else spec.containers.value,
        # The volume alone: what is in it changes without the pod.
        "healthChecks": True if spec.health is not None and spec.health.checks else None,
        "jobLogs": spec.job_logs.model_dump(mode="json", by_alias=True, exclude_none=True) if spec.job_logs else None,
        "ssh": spec.ssh.model_dump(mode="json", by_alias=True, exclude_none=True) if spec.ssh else None,
        # Their names only: an existing claim does not change with its template.
        "claims": sorted(claims.template_name(template) for template in spec.volume_claim_templates),
        "identity": identity.of_nodes(cluster),
    }
    return {key: value for key, value in given.items() if value is not None and value not in ("", [], {})}


def of(nodeset: NodeSet, cluster: Cluster | None = None) -> str:
    """Hash of everything in the spec that a pod is created from, and in that of its Cluster."""
    return hash_of(content(nodeset, cluster))


def hash_of(given: Content) -> str:
    """Hash of such a part."""
    text = json.dumps({"generator": GENERATOR, **given}, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_LENGTH]


def restored(nodeset: NodeSet, recorded: Content) -> NodeSet:
    """The NodeSet with that part of its spec as recorded; everything else is current."""
    spec, resources = nodeset.spec, recorded.get("resources")
    templates = {claims.template_name(template): template for template in nodeset.spec.volume_claim_templates}
    spec = spec.model_copy(
        update={
            "template": recorded.get("template"),
            "image": recorded.get("image"),
            "resources": Resources.model_validate(resources) if resources is not None else None,
            "features": tuple(recorded.get("features") or ()),
            "gres": recorded.get("gres"),
            "weight": recorded.get("weight"),
            "extra_conf": recorded.get("extraConf") or "",
            "confinement": Confinement(recorded.get("confinement") or Confinement.NONE),
            "containers": ContainerJobs(recorded.get("containers") or ContainerJobs.NONE),
            "job_logs": JobLogs.model_validate(recorded["jobLogs"]) if recorded.get("jobLogs") else None,
            "ssh": Ssh.model_validate(recorded["ssh"]) if recorded.get("ssh") else None,
            "health": _with_checks(spec.health, has_checks=bool(recorded.get("healthChecks"))),
            "volume_claim_templates": tuple(
                templates.get(name, {"metadata": {"name": name}}) for name in recorded.get("claims") or ()
            ),
        }
    )
    return nodeset.model_copy(update={"spec": spec})


def _with_checks(health: Health | None, *, has_checks: bool) -> Health | None:
    """A pod has a volume for checks, whatever they are, or it has none."""
    if has_checks == (health is not None and bool(health.checks)):
        return health
    checks = (_ANY_CHECK,) if has_checks else ()
    return (health or Health(checks=(_ANY_CHECK,))).model_copy(update={"checks": checks})


def restored_cluster(cluster: Cluster, recorded: Content) -> Cluster:
    """The Cluster with that part of its spec as recorded; everything else is current."""
    return identity.with_nodes(cluster, recorded.get("identity") or {})
