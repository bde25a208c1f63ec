"""Changing the configuration of a Cluster as a person would, and seeing what becomes of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hack.localkube.kubectl import wait_for
from tests.support.slurm_in_kubernetes import SlurmInKubernetes

SOON = 15.0
"""Seconds within which a change is to be live."""

CONFIG = "slurm-config"
PREFLIGHTS = "--selector=app.kubernetes.io/component=preflight"
NIGHT = {"name": "night", "nodeSets": ["compute"], "config": "MaxTime=60"}


def config_applied(slurm: SlurmInKubernetes) -> dict[str, Any]:
    """The condition that says how far the configuration is."""
    return slurm.condition("cluster", slurm.name, "ConfigApplied")


def edit(slurm: SlurmInKubernetes, **spec: Any) -> int:
    """Merge fields into the Cluster's spec; returns the generation."""
    body = json.dumps({"spec": spec})
    slurm.kube("patch", "cluster", slurm.name, "--type=merge", f"--patch={body}")
    return int(slurm.get("cluster", slurm.name)["metadata"]["generation"])


def wait_live(slurm: SlurmInKubernetes, generation: int, timeout: float = SOON) -> None:
    """Wait until this generation of the spec, or a later one, is what slurmctld runs."""

    def live() -> bool:
        found = config_applied(slurm)
        return bool(found.get("observedGeneration", 0) >= generation and found["status"] == "True")

    wait_for(f"generation {generation} live", live, timeout)


def wait_reason(slurm: SlurmInKubernetes, generation: int, reason: str, timeout: float = 30) -> str:
    """Wait until this generation has come to this end; returns the words."""

    def said() -> bool:
        found = config_applied(slurm)
        return bool(found.get("observedGeneration", 0) >= generation and found["reason"] == reason)

    wait_for(f"generation {generation} {reason}", said, timeout)
    return str(config_applied(slurm)["message"])


def shows(slurm: SlurmInKubernetes, *words: str) -> bool:
    """Whether slurmctld says that it runs with these values."""
    text = slurm.control("scontrol", "show", "config")
    return all(word in " ".join(text.split()) for word in words)


def rendered(slurm: SlurmInKubernetes) -> str:
    """The slurm.conf in the ConfigMap."""
    return str(slurm.get("configmap", CONFIG)["data"]["slurm.conf"])


def refused_and_mended(slurm: SlurmInKubernetes, spec: Mapping[str, Any], reason: str, word: str) -> None:
    """Apply what cannot work, see that nothing changes and the word is said, mend it, see that this is live."""
    before = slurm.get("configmap", CONFIG)["data"]
    message = wait_reason(slurm, edit(slurm, **spec), reason, 60)
    assert word in message
    assert slurm.get("configmap", CONFIG)["data"] == before
    wait_for("the Event", lambda: any(reason in line and word in line for line in slurm.events(slurm.name)), 30)
    other = "KillWait=6" if shows(slurm, "KillWait = 5 sec") else "KillWait=5"
    wait_live(slurm, edit(slurm, **{**dict.fromkeys(spec), "extraConf": other}))
    assert shows(slurm, f"{other.replace('=', ' = ')} sec")
