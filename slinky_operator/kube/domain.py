"""The DNS domain of the Kubernetes cluster, as kubelets configure it in every pod, the operator's own included.

A kubelet writes `<namespace>.svc.<domain>`, `svc.<domain>` and `<domain>` into the search list of each pod that uses
the cluster's DNS. A search list given to other pods must be made of whole names, so the domain must be known.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

RESOLV_CONF: Final = Path("/etc/resolv.conf")


def domain_in(text: str) -> str:
    """The cluster's domain by the text of a resolv.conf; empty if that was not written for a pod."""
    search: list[str] = []
    for line in text.splitlines():
        word, *rest = line.split() or [""]
        if word == "search":
            # The last one counts, as for the resolver.
            search = rest
    for entry in search:
        if entry.startswith("svc."):
            return entry.removeprefix("svc.").rstrip(".")
    return ""


def own_domain(path: Path = RESOLV_CONF) -> str:
    """The cluster's domain as this process sees it; empty outside a pod."""
    try:
        return domain_in(path.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return ""


def search_below(pod_spec: dict[str, Any], namespace: str, services: Iterable[str], domain: str) -> None:
    """Let a pod resolve the host names of pods below Services, after what its spec lists.

    Parameters
    ----------
    domain
        The cluster's domain; nothing changes if it is empty: a search list accepts complete names only.
    """
    if not domain:
        return
    # What is there may be the user's, as it is in a cache.
    config = pod_spec.get("dnsConfig") or {}
    wanted = (f"{service}.{namespace}.svc.{domain}" for service in services)
    pod_spec["dnsConfig"] = {**config, "searches": [*dict.fromkeys([*(config.get("searches") or ()), *wanted])]}
