"""Which trial an object belongs to, by its name alone."""

from __future__ import annotations

import pytest

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.trials import pods
from slinky_operator.cluster.trials.pods import TrialKind
from tests.unit.cluster.world import cluster_object

CLUSTER = Cluster.parse(cluster_object())
KINDS = [pods.CONFIGURATION, pods.REHEARSAL, pods.STATE, pods.JOBS, pods.SLURMDBD_CONF, pods.VERSIONS]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.tries)
def test_the_objects_of_a_trial_are_those_of_one_kind_only(kind: TrialKind) -> None:
    made = pods.objects(CLUSTER, kind, {"volumes": []}, identity={}, data={"file": "text"})
    assert made.config_map is not None
    assert made.config_map.name == made.name
    assert len(made.name) == len("slurm-preflight-") + 10
    assert [one for one in KINDS if one.has(CLUSTER, made.pod.body)] == [kind]
    assert [one for one in KINDS if one.has(CLUSTER, made.config_map.body)] == [kind]


@pytest.mark.parametrize("name", ["slurm-controller-0", "slurm", "slurmer-preflight-0123456789", "other-preflight-r12"])
def test_no_other_object_is_one_of_a_trial(name: str) -> None:
    assert not any(kind.has(CLUSTER, {"metadata": {"name": name}}) for kind in KINDS)


def test_the_name_changes_with_the_pod_and_with_what_it_tries() -> None:
    def name(spec: dict[str, object], identity: dict[str, str]) -> str:
        return pods.objects(CLUSTER, pods.STATE, {"volumes": [], **spec}, identity=identity).name

    assert name({}, {"hash": "1"}) == name({}, {"hash": "1"})
    assert len({name({}, {"hash": "1"}), name({}, {"hash": "2"}), name({"hostname": "a"}, {"hash": "1"})}) == 3
