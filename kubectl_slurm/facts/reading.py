"""Facts from JSON of the API server. Fields that are missing or of another form count as absent."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from kubectl_slurm.facts.objects import ClusterFacts, Condition, KeyFacts, NodeSetFacts, PodFacts, TokenFacts
from slinky_api import labels

Json = Mapping[str, Any]

LAST_SECOND: Final = 253_402_300_799
"""The last second of the year 9999, since 1970: later ones cannot be shown."""

TEMPORARY: Final = {"app.kubernetes.io/managed-by": "kubectl-slurm"}
"""Labels of a Token that a call of this program makes for itself."""


def cluster(obj: Json) -> ClusterFacts:
    """A Cluster."""
    meta, spec, status = _map(obj, "metadata"), _map(obj, "spec"), _map(obj, "status")
    jobs, config = _map(status, "jobs"), _map(status, "config")
    return ClusterFacts(
        name=_text(meta, "name"),
        namespace=_text(meta, "namespace"),
        external=bool(spec.get("server")),
        server=_text(spec, "server") or _text(status, "server"),
        ready=status.get("isReady") is True,
        summary=_text(status, "summary"),
        slurm_version=_text(status, "slurmVersion"),
        api_version=_text(status, "apiVersion"),
        conditions=conditions(status),
        running=jobs.get("running") if jobs else None,
        pending=jobs.get("pending") if jobs else None,
        waiting=tuple((_text(one, "reason"), _number(one, "jobs")) for one in jobs.get("waiting") or ()),
        applied_hash=_text(config, "appliedHash"),
        hash=_text(config, "hash"),
        grants=tuple(_grants(_text(meta, "namespace"), _map(spec, "auth"))),
        key_secrets=_key_secrets(_text(meta, "name"), _map(spec, "auth")),
    )


def nodeset(obj: Json) -> NodeSetFacts:
    """A NodeSet."""
    status = _map(obj, "status")
    nodes = _map(status, "nodes")
    spec = _map(obj, "spec")
    return NodeSetFacts(
        name=_text(_map(obj, "metadata"), "name"),
        cluster=_text(spec, "clusterName") or _text(_map(spec, "controllerRef"), "name"),
        desired=_number(status, "desired"),
        ready=_number(status, "readyReplicas"),
        draining=_number(nodes, "draining"),
        drained=_number(nodes, "drained"),
        down=_number(nodes, "down"),
        starting=_number(nodes, "starting"),
        confined=_text(spec, "confinement") == "Constrain",
        summary=_text(status, "summary"),
        conditions=conditions(status),
    )


def token(obj: Json) -> TokenFacts:
    """A Token."""
    meta, spec, status = _map(obj, "metadata"), _map(obj, "spec"), _map(obj, "status")
    ref, secret = _map(spec, "clusterRef"), _map(spec, "secretRef")
    return TokenFacts(
        name=_text(meta, "name"),
        cluster=_text(ref, "name"),
        cluster_namespace=_text(ref, "namespace") or _text(meta, "namespace"),
        user=_text(status, "username") or _text(spec, "username") or "nobody",
        secret=_text(secret, "name") or _text(meta, "name"),
        key=_text(secret, "key") or "auth-token",
        refresh=spec.get("refresh") is not False,
        issued=moment(status.get("issuedAt")),
        expires=moment(status.get("expiresAt")),
        ready=next((one for one in conditions(status) if one.type == "Ready"), None),
        temporary=TEMPORARY.items() <= _map(meta, "labels").items(),
    )


def pod(obj: Json) -> PodFacts:
    """A pod."""
    meta, status = _map(obj, "metadata"), _map(obj, "status")
    found = conditions(status)
    return PodFacts(
        name=_text(meta, "name"),
        slurm_node=_text(_map(obj, "spec"), "hostname") or _text(meta, "name"),
        nodeset=_text(_map(meta, "labels"), labels.LABEL_NODESET_NAME),
        node=_text(_map(obj, "spec"), "nodeName"),
        phase=_text(status, "phase"),
        ready=any(one.type == "Ready" and one.status == "True" for one in found),
        deleting=bool(meta.get("deletionTimestamp")),
        trouble=_trouble(status, found),
        conditions=found,
    )


def _key_secrets(cluster: str, auth: Json) -> tuple[str, ...]:
    """Secrets with the keys of auth/slurm and auth/jwt: those of the site, or those that the operator generates."""
    generated = {"slurmKeyRef": f"{cluster}-auth-slurm", "jwtKeyRef": f"{cluster}-auth-jwt"}
    return tuple(_text(_map(auth, field), "name") or name for field, name in generated.items())


def _grants(namespace: str, auth: Json) -> Iterator[tuple[str, str]]:
    for one in auth.get("tokens") or ():
        if isinstance(one, Mapping):
            spaces, users = one.get("namespaces") or (namespace,), one.get("usernames") or ("nobody",)
            yield from ((str(space), str(user)) for space in spaces for user in users)


def keys(secret: Json) -> tuple[KeyFacts, ...]:
    """Keys with an end in the JSON Web Key Sets of a Secret; of the keys themselves nothing is kept."""
    found = []
    for name, value in _map(secret, "data").items():
        if not name.endswith(".jwks"):
            continue
        try:
            read = json.loads(base64.b64decode(value))
            entries = read["keys"]
        except (ValueError, TypeError, KeyError, RecursionError, binascii.Error):
            # Whether daemons can use a key set is reported in conditions of the Cluster, which the screen shows too.
            continue
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict) and isinstance(entry.get("exp"), int) and 0 <= entry["exp"] <= LAST_SECOND:
                place = f"{_text(_map(secret, 'metadata'), 'name')}/{name} {_text(entry, 'kid')}"
                found.append(KeyFacts(place.strip(), datetime.fromtimestamp(entry["exp"], UTC)))
    return tuple(found)


def conditions(status: Json) -> tuple[Condition, ...]:
    """Conditions of an object."""
    return tuple(
        Condition(
            type=_text(one, "type"),
            status=_text(one, "status"),
            reason=_text(one, "reason"),
            message=_text(one, "message"),
            since=moment(one.get("lastTransitionTime")),
        )
        for one in status.get("conditions") or ()
        if isinstance(one, Mapping)
    )


def moment(value: object) -> datetime | None:
    """A time as Kubernetes writes it."""
    if not isinstance(value, str):
        return None
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        return None


def _trouble(status: Json, found: tuple[Condition, ...]) -> str:
    """Why a pod does not run: that of a container that waits, else that of its scheduling."""
    for kind in ("initContainerStatuses", "containerStatuses"):
        for one in status.get(kind) or ():
            waiting = _map(_map(one, "state"), "waiting")
            if _text(waiting, "reason") not in {"", "PodInitializing", "ContainerCreating"}:
                tail = f": {waiting['message']}" if waiting.get("message") else ""
                return f"container {_text(one, 'name')}: {waiting['reason']}{tail}"
    unscheduled = next((one for one in found if one.type == "PodScheduled" and one.status == "False"), None)
    return f"{unscheduled.reason}: {unscheduled.message}" if unscheduled else ""


def _map(obj: Json, name: str) -> Json:
    value = obj.get(name)
    return value if isinstance(value, Mapping) else {}


def _text(obj: Json, name: str) -> str:
    value = obj.get(name)
    return value if isinstance(value, str) else ""


def _number(obj: Json, name: str) -> int:
    value = obj.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
