"""Messages about keys: what has happened, to which Secret, and what to do. They never contain a key."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.parts.keys.stored_keys import MountedKey
from slinky_operator.reconcile.text import cut, joined, stamp
from slinky_operator.slurm import naming
from slinky_operator.slurm.naming import KeySource

PURPOSES: Final = {naming.SLURM_KEY: "key of auth/slurm", naming.JWT_KEY: "key of auth/jwt"}


_GOES_ON: Final = "daemons and new pods go on with the key that was accepted before"


def lost(cluster: Cluster, name: str, source: KeySource, mounted: MountedKey | None) -> str:
    """Neither the Secret nor the copy exists.

    Parameters
    ----------
    mounted
        Where a daemon still has the key; `None` if none is seen.
    """
    still = "running daemons still have the key" if mounted is not None else "no running daemon is known to have it"
    return (
        f"{PURPOSES[name]}: Secret {source.secret} is gone, and so is its copy; {still}, and no new pod can start. "
        f"{_recovered(cluster, source, mounted)}"
    )


def other_than_started(cluster: Cluster, name: str, source: KeySource, mounted: MountedKey | None) -> str:
    """The Secret has another key than slurmctld was started with, and there is no copy.

    Parameters
    ----------
    mounted
        Where a daemon still has the key; `None` if none is seen.
    """
    return (
        f"{PURPOSES[name]}: Secret {source.secret} has another key than slurmctld was started with, and there is no "
        "copy of that one; daemons that read it could not authenticate to the others. "
        f"{_recovered(cluster, source, mounted)}"
    )


def missing(cluster: Cluster, name: str, why: str, *, direct: bool = True) -> str:
    """The user's Secret does not exist, or has no key in it.

    Parameters
    ----------
    direct
        Whether pods mount that Secret.
    """
    then = "running daemons still have the key, and no new pod can start" if direct else _GOES_ON
    return f"{why}; {then}. Put it back: it is {name} of Secret {naming.key_copy(cluster.name)}"


def changed(cluster: Cluster, source: KeySource, early_default: str = "", *, direct: bool = True) -> str:
    """The Secret has another key of auth/slurm than the daemons.

    Parameters
    ----------
    direct
        Whether pods mount that Secret.
    early_default
        For a key set, the id of its default key if the daemons do not have that key yet.
    """
    undo = (
        f"Put the earlier one back, which is {naming.SLURM_KEY} of Secret {naming.key_copy(cluster.name)}; or scale "
        "all NodeSets to 0, which waits for their jobs: once no slurmd pod is left and no job runs, the new one is used"
    )
    if early_default:
        undo = (
            f"Its default key {cut(early_default, 40)} is not in the set that they have: first add it and keep the "
            f"earlier default, and make it the default once all daemons have read it. {undo}"
        )
    if source.generated:
        undo = "Delete it, and the operator makes it again with the key that they have"
    then = "so no configuration is loaded" if direct else f"so none gets it: {_GOES_ON}"
    return (
        f"{PURPOSES[naming.SLURM_KEY]}: {source.key} of Secret {source.secret} is another one than the daemons run "
        f"with, and one that read it could not authenticate to the others, {then}. {undo}"
    )


def other_form(cluster: Cluster, source: KeySource) -> str:
    """The Secret has what daemons have, under the name of the other form."""
    file = cluster.status.slurm_key_file
    return (
        f"{PURPOSES[naming.SLURM_KEY]}: {source.key} of Secret {source.secret} is what daemons have as {file}, and "
        f"Slurm reads the same text as another key there, so none gets it: {_GOES_ON}. Give it under the name {file}, "
        "in the Secret and in spec.auth.slurmKeyRef.key"
    )


def loading(source: KeySource, lacking: Mapping[str, str], since: datetime | None) -> str:
    """Daemons still have to read a key set that was accepted."""
    return (
        f"{PURPOSES[naming.SLURM_KEY]}: {source.key} of Secret {source.secret} is a new key set, which daemons have to "
        f"prove before the next one: {_lacking(lacking, since)}. slurmctld is reconfigured once kubelets have had time "
        "to mount it; slurmds read it then"
    )


def waits_for_proof(source: KeySource, lacking: Mapping[str, str], since: datetime | None) -> str:
    """The same, where no daemon can read the set before it is accepted."""
    return (
        f"{PURPOSES[naming.SLURM_KEY]}: {source.key} of Secret {source.secret} is the next step, which is taken when "
        f"all daemons have proven to have the set before it: {_lacking(lacking, since)}"
    )


def too_early(cluster: Cluster, source: KeySource, lacking: Mapping[str, str], since: datetime | None) -> str:
    """A key set follows before all daemons have the one before."""
    return (
        f"{PURPOSES[naming.SLURM_KEY]}: {source.key} of Secret {source.secret} is a step that comes too early, so no "
        "configuration is loaded: daemons have not proven to have the set before it: "
        f"{_lacking(lacking, since)}. Put that set back, which is {naming.SLURM_KEY} of Secret "
        f"{naming.key_copy(cluster.name)}, and take this step when the condition Progressing no longer says KeyPending"
    )


def asked_first(source: KeySource) -> str:
    """A key set follows, and daemons are being asked for the one before."""
    return (
        f"{PURPOSES[naming.SLURM_KEY]}: {source.key} of Secret {source.secret} is a new key set; daemons are asked "
        "whether all have the one before it"
    )


def staging(source: KeySource) -> str:
    """The Secret from which pods mount the user's key is about to be written."""
    return f"{PURPOSES[naming.SLURM_KEY]}: {source.key} of Secret {source.secret} is being given to pods"


def settling(source: KeySource, seconds: int) -> str:
    """A Secret was written a moment ago."""
    return (
        f"{PURPOSES[naming.SLURM_KEY]}: Secret {source.secret} was written less than {seconds} s ago, and kubelets may "
        "still have mounted what it had before; slurmctld is reconfigured afterwards"
    )


def _lacking(lacking: Mapping[str, str], since: datetime | None) -> str:
    words = joined([f"{name} {why}" for name, why in sorted(lacking.items())])
    return f"{words} (asked since {stamp(since)})" if since is not None else words


def refused(source: KeySource, why: str) -> str:
    """A key of the user's cannot be used, and nothing runs with it yet."""
    return f"{why}; no daemon is started with it. {_make(source)}"


def refused_beside(cluster: Cluster, name: str, why: str, *, direct: bool = True) -> str:
    """The same, while daemons run with an earlier key.

    Parameters
    ----------
    direct
        Whether pods mount the Secret with it.
    """
    then = "running daemons go on with the earlier key, no configuration is loaded, and no new pod can start"
    then = then if direct else _GOES_ON
    return f"{why}; {then}. Put the earlier one back, which is {name} of Secret {naming.key_copy(cluster.name)}"


def weak(source: KeySource, why: str) -> str:
    """Daemons run with such a key."""
    if source.file == naming.SLURM_JWKS:
        how = "Correct it in the next rotation, step by step"
    elif source.file == naming.SLURM_KEY:
        how = "Give another one and scale all NodeSets to 0, which waits for their jobs: once no job runs, it is used"
    else:
        how = "Give another one in the Secret: slurmctld reads it, and tokens that others signed with this one end"
    return f"{why}. The daemons run with it, and go on. {how}"


def _make(source: KeySource) -> str:
    """How to make a key."""
    if source.file == naming.SLURM_JWKS:
        return "Correct the key set"
    size = 1024 if source.file == naming.SLURM_KEY else 32
    return (
        f"Make one with head -c {size} /dev/urandom > {source.key}, or leave the field out, and the operator makes one"
    )


def pending(source: KeySource, why: str) -> str:
    """The key of auth/jwt has changed, and slurmctld must read it."""
    return (
        f"{PURPOSES[naming.JWT_KEY]}: {source.key} of Secret {source.secret} has changed. slurmctld is asked to read it"
        f"{f' ({why})' if why else ''}; until it has, the operator makes its tokens with the earlier key. Tokens "
        "signed by others with it are then invalid"
    )


def slurmdbd_reads_later(source: KeySource) -> str:
    """slurmctld has the key of auth/jwt, and slurmdbd has not."""
    return (
        f"{PURPOSES[naming.JWT_KEY]}: slurmctld has read the new {source.key} of Secret {source.secret}, and "
        "slurmdbd's pod is replaced, since slurmdbd reads it at its start only. Until then calls about accounting "
        "and partitions fail for every token"
    )


def pending_elsewhere(source: KeySource) -> str:
    """The same, if slurmctld is external."""
    return (
        f"{PURPOSES[naming.JWT_KEY]}: {source.key} of Secret {source.secret} has changed, and slurmctld, which runs "
        "elsewhere, does not take it: give slurmctld that key, or put the earlier one back. Until then the operator "
        "makes its tokens with the earlier one, which it has in memory only"
    )


def restored(name: str, source: KeySource) -> str:
    """A generated key was missing."""
    return f"{PURPOSES[name]}: Secret {source.secret} was gone; it is back, with the key that the daemons run with"


def undone(source: KeySource) -> str:
    """A generated key was replaced."""
    return (
        f"{PURPOSES[naming.SLURM_KEY]}: Secret {source.secret} had another key than the daemons run with; "
        "theirs has been restored"
    )


def taken(source: KeySource) -> str:
    """A new key of the user is used."""
    return f"{source.key} of Secret {source.secret} is used now: no slurmd pod is left that has the earlier key"


def _recovered(cluster: Cluster, source: KeySource, mounted: MountedKey | None) -> str:
    """How to recover a key: from a daemon, whose kubelet keeps what it has mounted, or with a new one."""
    kubectl = f"kubectl -n {cluster.namespace}"
    write = (
        f"{kubectl} delete secret {source.secret} --ignore-not-found; "
        f"{kubectl} create secret generic {source.secret} --from-file={source.key}"
    )
    if mounted is not None:
        read = f"{kubectl} exec {mounted.pod} -c {mounted.container} -- cat {mounted.path} > {source.key}"
        return f"Take it from {mounted.container}: {read}; {write}"
    if source.file != naming.JWT_KEY:
        return (
            f"Restore Secret {source.secret} from a backup, or with the key that a login pod or a node outside "
            f"Kubernetes still has, as {source.key}: {write}"
        )
    return (
        f"Restore Secret {source.secret} from a backup. If there is none, make a new key: head -c 32 /dev/urandom > "
        f"{source.key}; {write}. slurmctld then starts within minutes, and running jobs go on. Every token that was "
        "signed with the lost key becomes invalid: those of Tokens are renewed, all others have to be issued again"
    )
