"""Login pods mount the key that daemons have, and are not replaced when the same set is the user's."""

from __future__ import annotations

import copy
from typing import Any

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.loginset import LoginSet
from slinky_operator.kube.resources import CLUSTERS, DEPLOYMENTS
from slinky_operator.loginset.bodies import objects
from slinky_operator.loginset.bodies.slurm_access import Slurm
from slinky_operator.slurm import naming
from tests.unit.loginset.builders import World

SET_OF_USERS = {"auth": {"slurmKeyRef": {"name": "mine", "key": "slurm.jwks"}}}


def cluster_with(world: World, file: str | None, spec: dict[str, Any]) -> None:
    """Let the Cluster have another spec, and daemons that have the key as this file."""
    cluster = world.kube.objects["clusters", "ns", "slurm"]
    status = {**cluster["status"], **({"slurmKeyFile": file} if file else {})}
    world.kube.put(CLUSTERS, {**cluster, "spec": spec, "status": status})


async def test_login_pods_stay_when_a_generated_set_becomes_the_users() -> None:
    world = World()
    cluster_with(world, "slurm.jwks", {})
    world.secret("slurm-auth-accepted", {"slurm.jwks": b"a set"})
    await world.settle()
    before = world.child("deployments")
    assert "slurm-auth-accepted" in str(before["spec"]["template"])
    assert "slurm.jwks" in str(before["spec"]["template"])
    cluster_with(world, "slurm.jwks", SET_OF_USERS)
    await world.settle()
    assert world.child("deployments")["spec"] == before["spec"]
    assert world.child("deployments")["metadata"]["annotations"] == before["metadata"]["annotations"]


async def test_login_pods_keep_a_single_key_until_daemons_have_a_set() -> None:
    world = World()
    await world.settle()
    single = str(world.child("deployments")["spec"]["template"])
    assert "slurm.jwks" not in single
    cluster_with(world, "slurm.key", SET_OF_USERS)
    world.secret("slurm-auth-accepted", {"slurm.key": b"k" * 32})
    await world.settle()
    pending = str(world.child("deployments")["spec"]["template"])
    assert "slurm-auth-accepted" in pending
    assert "slurm.jwks" not in pending
    cluster_with(world, "slurm.jwks", SET_OF_USERS)
    world.secret("slurm-auth-accepted", {"slurm.jwks": b"a set"})
    await world.settle()
    assert "slurm.jwks" in str(world.child("deployments")["spec"]["template"])


async def test_login_pods_of_an_earlier_operator_with_a_set_of_the_users_stay() -> None:
    world = World(SET_OF_USERS)
    world.secret("slurm-auth-accepted", {"slurm.jwks": b"a set"})
    await world.settle()
    live = world.child("deployments")
    loginset = LoginSet.parse(world.of("loginsets")[0])
    cluster = Cluster.parse(world.kube.objects["clusters", "ns", "slurm"])
    key = naming.mounted_key(cluster)
    assert key is not None
    image = {"image": "slinky/login:26.05"}
    noted = objects.inputs_before(loginset, cluster, Slurm(key, naming.conf_server(cluster) or ""), image)
    # Its pods mount the user's own Secret.
    made = copy.deepcopy(live)
    template = made["spec"]["template"]
    template["metadata"]["annotations"] = {"a": "b"}
    made["metadata"]["annotations"][objects.ANNOTATION_INPUTS] = noted
    world.kube.put(DEPLOYMENTS, made)
    cluster_with(world, "slurm.jwks", SET_OF_USERS)
    await world.settle()
    assert world.child("deployments")["spec"]["template"] == template
    assert world.child("deployments")["metadata"]["annotations"][objects.ANNOTATION_INPUTS] == noted
    # Another Secret is another file for them.
    cluster_with(world, "slurm.jwks", {"auth": {"slurmKeyRef": {"name": "other", "key": "slurm.jwks"}}})
    await world.settle()
    assert world.child("deployments")["spec"]["template"] != template
