"""The PodDisruptionBudget of a set: there with several pods only."""

from __future__ import annotations

from tests.unit.loginset.builders import World


async def test_several_pods_are_evicted_one_at_a_time_and_a_single_one_keeps_no_node() -> None:
    world = World(replicas=2)
    await world.settle()
    budget, pods = world.child("poddisruptionbudgets"), world.child("deployments")["spec"]["template"]
    assert budget["spec"]["maxUnavailable"] == 1
    assert budget["spec"]["selector"]["matchLabels"].items() <= pods["metadata"]["labels"].items()
    assert budget["metadata"]["ownerReferences"][0]["name"] == "front"
    world.change(replicas=1)
    await world.step()
    assert not world.has("poddisruptionbudgets")
    assert world.has("deployments")
    # Also without what new pods would need.
    world.kube.objects.pop(("clusters", "ns", "slurm"))
    world.change(replicas=3)
    await world.step()
    assert world.has("poddisruptionbudgets")
