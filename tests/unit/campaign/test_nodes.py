"""A machine whose Node is lost for good gets another one, under a name that none had."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from hack.localkube.cluster import Cluster
from hack.localkube.host.machine import ServiceSpec
from hack.localkube.kubectl import KubectlFailed
from tests.campaign.faults import machines
from tests.campaign.faults.kind import MetNothing
from tests.campaign.faults.machines import MACHINES, NODE_GONE, NODE_REPLACED
from tests.campaign.plan import has_other_node, make
from tests.campaign.site import nodes

KUBELET = ("/bin/kubelet", "--config=/x/node-1/kubelet.json", "--kubeconfig=/x/k", "--hostname-override=node-1", "-v")


@dataclass
class Folders:
    """A cluster of two machines, which are folders, and notes what is done."""

    root: Path
    done: list[str] = field(default_factory=list)
    objects: tuple[str, ...] = ()
    refuses: bool = False
    folder: Path = Path()

    @property
    def paths(self) -> Folders:
        return self

    @property
    def kubectl(self) -> Folders:
        return self

    @property
    def kubeconfig(self) -> Path:
        return self.root / "kubeconfig"

    def __call__(self, *arguments: str, timeout: float = 0) -> str:
        self.done.append(" ".join(arguments))
        if self.refuses:
            raise KubectlFailed(arguments, "no answer")
        return ""

    def get(self, kind: str) -> dict[str, Any]:
        return {"items": [{"metadata": {"name": one}} for one in self.objects]}

    def node_names(self) -> Sequence[str]:
        return ["node-1", "node-2"]

    def machine(self, name: str) -> Any:
        folder = self.root / name
        folder.mkdir(exist_ok=True)
        return Machine(folder, self.done)


@dataclass
class Machine:
    folder: Path
    done: list[str]

    def __truediv__(self, name: str) -> Path:
        return self.folder / name

    def run(self, service: ServiceSpec) -> None:
        self.done.append(" ".join(service.argv))

    def resume(self, service: str) -> None:
        self.done.append(f"{service} of {self.folder.name} goes on")


def cluster(root: Path, **more: Any) -> tuple[Folders, Cluster]:
    found = Folders(root, **more)
    for name in found.node_names():
        found.machine(name)
    return found, cast("Cluster", found)


@pytest.mark.parametrize("refuses", [False, True])
def test_another_node_comes_whatever_the_api_server_says(tmp_path: Path, refuses: bool) -> None:
    folders, one = cluster(tmp_path, refuses=refuses)
    nodes.put_away(one, "node-1", KUBELET)
    assert [nodes.is_away(one, machine) for machine in folders.node_names()] == [True, False]
    assert nodes.name_of(one, "node-1") == "node-1"
    nodes.replace(one)
    deleted, started = folders.done
    assert deleted == "delete node node-1 --ignore-not-found --wait=false"
    other = [f"--kubeconfig={tmp_path}/kubeconfig", "--hostname-override=node-3", "-v"]
    assert started.split() == ["/bin/kubelet", "--config=/x/node-1/kubelet.json", *other]
    assert [nodes.name_of(one, machine) for machine in folders.node_names()] == ["node-3", "node-2"]
    folders.done.clear()
    nodes.replace(one)
    assert not folders.done


def test_no_name_is_given_twice(tmp_path: Path) -> None:
    _, one = cluster(tmp_path)
    names = []
    for machine in ("node-1", "node-1", "node-2", "node-1"):
        nodes.put_away(one, machine, KUBELET)
        nodes.replace(one)
        names.append(nodes.name_of(one, machine))
    assert names == ["node-3", "node-4", "node-5", "node-6"]


def test_objects_of_lost_nodes_go_and_no_others(tmp_path: Path) -> None:
    folders, one = cluster(tmp_path, objects=("node-1", "node-2", "node-3", "slurm-campaign-both"))
    nodes.put_away(one, "node-1", KUBELET)
    nodes.replace(one)
    folders.done.clear()
    nodes.forget(one)
    assert folders.done == ["delete node node-1 --ignore-not-found --wait=false"]


def test_no_other_fault_is_about_a_machine_that_is_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders, one = cluster(tmp_path)
    nodes.put_away(one, "node-1", KUBELET)
    stopped = list[str]()
    monkeypatch.setattr(machines, "_stop", lambda _, host, service: stopped.append(host))
    place = cast("Any", type("Place", (), {"cluster": one}))
    for which in range(2):
        MACHINES["kubelet stopped"].play(place, {"which": which}, lambda _: None)
    assert stopped == ["node-2", "node-2"]
    assert folders.done == ["kubelet of node-2 goes on"] * 2


@pytest.mark.parametrize(("name", "is_away"), [(NODE_REPLACED, False), (NODE_GONE, True)])
def test_a_node_is_replaced_at_the_end_of_its_fault_or_of_the_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, is_away: bool
) -> None:
    _, one = cluster(tmp_path)
    monkeypatch.setattr(machines, "_stop", lambda *_: None)
    monkeypatch.setattr(machines, "processes", lambda *_, **__: [])
    monkeypatch.setattr(machines, "of_service", lambda *_: [os.getpid()])
    monkeypatch.setattr(nodes, "command_of", lambda _: [*KUBELET])
    monkeypatch.setattr(nodes, "is_on", lambda *_: True)
    seen = list[bool]()
    place = cast("Any", type("Place", (), {"cluster": one}))
    said = MACHINES[name].play(place, {"which": 0}, lambda _: seen.append(nodes.is_away(one, "node-1")))
    assert machines.lost_with(said) == ("node-1",)
    assert seen == [True]
    assert nodes.is_away(one, "node-1") is is_away


def test_a_machine_without_a_kubelet_loses_no_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, one = cluster(tmp_path)
    monkeypatch.setattr(machines, "of_service", lambda *_: [os.getpid()])
    place = cast("Any", type("Place", (), {"cluster": one}))
    with pytest.raises(MetNothing, match="no kubelet of node-1 is there"):
        MACHINES[NODE_GONE].play(place, {"which": 0}, lambda _: None)
    assert not nodes.is_away(one, "node-1")


def test_plans_with_other_nodes_are_known() -> None:
    plans = [make(seed, 45) for seed in range(100, 110)]
    assert 0 < sum(map(has_other_node, plans)) < len(plans)
