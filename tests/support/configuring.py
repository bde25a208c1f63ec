"""Changes the configuration of a Cluster as a person would, and observes the result."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hack.localkube.kubectl import wait_for
from tests.support.slurm_in_kubernetes import PATIENCE, SlurmInKubernetes

HASH = "cluster.slinky.slurm.net/config-hash"
"""Annotation of the ConfigMap with the hash of what is in it."""

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


def wait_live(slurm: SlurmInKubernetes, generation: int) -> None:
    """Wait until this generation of the spec, or a later one, is what slurmctld runs."""

    def live() -> bool:
        found = config_applied(slurm)
        return bool(found.get("observedGeneration", 0) >= generation and found["status"] == "True")

    wait_for(f"generation {generation} live", live, PATIENCE)


def wait_reason(slurm: SlurmInKubernetes, generation: int, reason: str, word: str) -> None:
    """Wait until this generation has come to this end, and says this word."""

    def said() -> bool:
        found = config_applied(slurm)
        this = found.get("observedGeneration", 0) >= generation and found["reason"] == reason
        return bool(this and word in found["message"])

    wait_for(f"generation {generation} {reason}: {word}", said, PATIENCE)


def is_loaded(slurm: SlurmInKubernetes) -> bool:
    """Whether slurmctld runs what the ConfigMap holds now, and the status says so."""
    status = slurm.get("cluster", slurm.name)["status"]["config"]
    return bool(status["appliedHash"] == slurm.get("configmap", CONFIG)["metadata"]["annotations"][HASH])


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
    wait_reason(slurm, edit(slurm, **spec), reason, word)
    assert slurm.get("configmap", CONFIG)["data"] == before
    wait_for("the Event", lambda: any(reason in line and word in line for line in slurm.events(slurm.name)), PATIENCE)
    other = "KillWait=6" if shows(slurm, "KillWait = 5 sec") else "KillWait=5"
    wait_live(slurm, edit(slurm, **{**dict.fromkeys(spec), "extraConf": other}))
    assert shows(slurm, f"{other.replace('=', ' = ')} sec")
