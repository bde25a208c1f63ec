"""``make run``: the flags that a local operator gets, and the routes that it needs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hack.developing import run
from hack.developing.cluster import SlurmCluster
from hack.developing.forwards import Forwards
from hack.developing.routes import Route, wanted
from hack.packaging.render import ROOT
from slinky_operator.settings import Settings


def node(name: str, address: str, pods: str | None) -> dict[str, Any]:
    addresses = [{"type": "Hostname", "address": name}, {"type": "InternalIP", "address": address}]
    return {"metadata": {"name": name}, "spec": {"podCIDR": pods} if pods else {}, "status": {"addresses": addresses}}


def test_a_local_operator_has_the_flags_of_the_chart(tmp_path: Path) -> None:
    own = tmp_path / "values-dev.yaml"
    own.write_text("log: {level: WARNING}\nslurm: {version: '24.11'}\n", encoding="utf-8")
    settings = Settings.load(run.flags(own), {})
    assert settings.images["slurmctld"] == "localhost/slinky/slurmctld:24.11"
    assert (settings.log_level, settings.cluster_domain, settings.health_host) == (
        *("WARNING", "cluster.local", "127.0.0.1"),
    )
    assert Settings.load(run.flags(tmp_path / "absent"), {}).log_level == "INFO"


def test_each_forwarded_cluster_is_in_the_operators_flag() -> None:
    forwards = Forwards()
    assert forwards.flags() == []
    forwards.ports.update({SlurmCluster("b", "y"): 2, SlurmCluster("a", "x"): 1})
    assert Settings.load(forwards.flags(), {}).slurmrestd_overrides == {
        ("a", "x"): "http://127.0.0.1:1",
        ("b", "y"): "http://127.0.0.1:2",
    }


def test_pods_are_routed_by_nodes_on_a_network_of_this_machine() -> None:
    nodes = [
        node("kind-worker", "172.18.0.3", "10.244.1.0/24"),
        node("node-2", "172.18.0.12", None),
        node("far", "10.0.0.3", "10.244.3.0/24"),
    ]
    assert wanted(nodes, ["172.18.0.0/16"]) == [
        Route("10.244.1.0/24", "172.18.0.3"),
        Route("10.244.2.0/24", "172.18.0.12"),
    ]
    assert wanted(nodes, []) == []


def test_every_target_that_the_guide_names_is_there_with_its_help() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    documented = set(re.findall(r"(?m)^([a-z0-9-]+):.*## ", makefile))
    assert documented >= {
        *("install", "uninstall", "deploy", "undeploy", "run", "manifests", "generate", "values-dev", "helm-docs"),
        *("docker-build", "docker-push", "package"),
    }
