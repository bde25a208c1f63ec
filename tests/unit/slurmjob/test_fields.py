"""No field of a SlurmJob, or of the tenants of a Cluster, is accepted and then has no effect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from slinky_api.v1alpha1.cluster.jobs import JobTenant
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.slurmjob.kind import SlurmJobObjectSpec
from slinky_api.v1alpha1.slurmjob.submission import SlurmJobSpec
from slinky_operator.jobs import tenants
from slinky_operator.jobs.translation import translate
from tests.unit.cluster.world import cluster_object

BASE: dict[str, Any] = {"script": "#!/bin/sh\n"}
VALUES: Mapping[str, dict[str, Any]] = {
    "script": {"script": "#!/bin/bash\n"},
    "command": {"script": None, "command": ["true"]},
    "args": {"args": ["a"]},
    "partition": {"partition": "night"},
    "account": {"account": "physics"},
    "qos": {"qos": "fast"},
    "nodes": {"nodes": 2},
    "tasks": {"tasks": 2},
    "cpus_per_task": {"cpusPerTask": 2},
    "memory": {"memory": "1G"},
    "gres": {"gres": "gpu:1"},
    "time": {"time": "5"},
    "features": {"features": "a100"},
    "array": {"array": "0-1"},
    "env": {"env": [{"name": "A", "value": "b"}]},
    "working_directory": {"workingDirectory": "/data"},
    "output": {"output": "/data/out"},
    "error": {"error": "/data/err"},
    "requeue": {"requeue": False},
    "parameters": {"parameters": {"nice": 10}},
}
"""A change of each field that Slurm gets."""

OF_THE_OBJECT = {
    "cluster_name": "test_refusals.py",
    "cluster_namespace": "test_refusals.py",
    "user": "test_refusals.py",
    "depends_on": "test_life.py",
    "suspend": "test_life.py",
    "backoff_limit": "test_life.py",
    "ttl_seconds_after_finished": "test_life.py",
    "cancel_policy": "test_life.py",
    "dry_run": "test_dry_run.py",
    "logs": "test_logs.py",
    "external": "test_external.py",
    "shared_volume": "test_results.py",
    "prepare": "test_prepare.py",
    "results": "test_results.py",
}
"""Fields about the object, and where each is tried."""

TENANT: dict[str, Any] = {"namespaces": ["team"], "user": "alice"}
TENANTS: Mapping[str, dict[str, Any]] = {
    "namespaces": {"namespaces": ["other"]},
    "namespace_labels": {"namespaces": [], "namespaceLabels": {"a": "c"}},
    "user": {"user": "bob"},
    "accounts": {"accounts": ["physics"]},
    "partitions": {"partitions": ["night"]},
    "qos": {"qos": ["fast"]},
    "uid": {"uid": 2001},
    "gid": {"gid": 2001},
}


def test_every_field_is_tried() -> None:
    assert set(SlurmJobSpec.model_fields) == set(VALUES)
    assert set(SlurmJobObjectSpec.model_fields) == {*VALUES, *OF_THE_OBJECT}
    assert set(JobTenant.model_fields) == set(TENANTS)


@pytest.mark.parametrize("field", VALUES)
def test_a_field_changes_what_is_submitted(field: str) -> None:
    before = translate(SlurmJobSpec.model_validate(BASE), name="a")
    assert translate(SlurmJobSpec.model_validate({**BASE, **VALUES[field]}), name="a").job != before.job


def grant(tenant: Mapping[str, Any]) -> object:
    """What namespace `team` may do."""
    cluster = Cluster.parse(cluster_object({"jobs": {"tenants": [{**TENANT, **tenant}]}}))
    return tenants.grant(cluster, "team", {"a": "b"}, None)


@pytest.mark.parametrize("field", TENANTS)
def test_a_field_of_a_tenant_changes_what_is_granted(field: str) -> None:
    assert grant(TENANTS[field]) != grant({})


@pytest.mark.parametrize("user", ["root", "slurm", "Root", "SLURM", "0"])
def test_no_tenant_is_a_user_who_rules(user: str) -> None:
    with pytest.raises(ValueError, match="must"):
        JobTenant.model_validate({"namespaces": ["team"], "user": user})
