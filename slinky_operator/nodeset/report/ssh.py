"""What keeps users from logging in by SSH to nodes on which they have jobs (`spec.ssh`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from slinky_api.conditions import Reason
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.model.ssh_keys import HOST_KEYS, MissingKeys
from slinky_operator.nodeset.report.health import Told
from slinky_operator.slurm.jobs.prolog_flags import CONTAIN

REASONS: Final = frozenset({Reason.SSH_NEEDS_CONTAIN, Reason.SSH_KEYS_MISSING})
"""Troubles with which a NodeSet is Ready: its nodes serve."""


def told(snapshot: Snapshot) -> Iterable[Told]:
    """What there is to report."""
    nodeset, cluster = snapshot.nodeset, snapshot.cluster
    if nodeset.spec.ssh is None or nodeset.deleting or not cluster.exists:
        return
    if not cluster.has_contain:
        text = (
            f"spec.ssh: spec.extraConf of Cluster {nodeset.spec.cluster_name} lacks {CONTAIN}, so no job has a step "
            "that takes sessions, and every login is refused. Add this line there; Slurm takes it over once no job runs"
        )
        yield Reason.SSH_NEEDS_CONTAIN, text, f"ssh needs {CONTAIN} in the Cluster", frozenset()
    if snapshot.missing_keys:
        texts = [_missing(nodeset.namespace, one) for one in snapshot.missing_keys]
        brief = f"ssh: no keys in Secret {snapshot.missing_keys[0].secret}"
        yield Reason.SSH_KEYS_MISSING, "; ".join(texts), brief, frozenset()


def _missing(namespace: str, keys: MissingKeys) -> str:
    """What a Secret lacks, what follows, and what to do."""
    name = keys.secret
    where = f"spec.ssh.{keys.field}"
    create = f"kubectl -n {namespace} create secret generic {name} --from-file"
    if keys.field != HOST_KEYS:
        return (
            f"{where}: there is no Secret {name}, so only keys in users' homes and in the directory are accepted. "
            f"Create it ({create}=USER=FILE.pub), or change the field; running pods read it within minutes"
        )
    what = (
        f"Secret {name} has no key ssh_host_ed25519_key or the like" if keys.is_there else f"there is no Secret {name}"
    )
    do = "Add one" if keys.is_there else f"Create it ({create}=ssh_host_ed25519_key)"
    return (
        f"{where}: {what}, so each pod makes a host key when it starts, and clients warn of a changed key after "
        f"each update. {do}, or change the field; pods that run keep theirs until they are replaced"
    )
