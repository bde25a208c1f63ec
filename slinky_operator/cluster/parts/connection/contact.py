"""Whether slurmrestd answers, accepts the token, and reaches slurmctld. Pure.

True conditions are kept until there is a first answer: an operator that has just started, or connects with another
token, knows nothing yet, and a Cluster must not seem to have been unreachable because of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from slinky_api.conditions import ClusterCondition, Reason, find
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.part import Shown, Word
from slinky_operator.cluster.secrets.checks import Missing
from slinky_operator.slurm import naming
from slinky_operator.slurm.connection.contact import ContactState, Trouble

CONTACT: Final = (ClusterCondition.API_REACHABLE, ClusterCondition.TOKEN_VALID, ClusterCondition.CONTROLLER_UP)
"""In the order in which one needs another."""


def contact(snapshot: Snapshot, missing: Missing | None) -> Mapping[ClusterCondition, Shown]:
    """Status, reason and message of each.

    Parameters
    ----------
    missing
        Why there is no connection.
    """
    slurm = snapshot.slurm
    words: tuple[tuple[Word, str], ...]
    if missing is not None:
        nothing = "there is nothing to connect with"
        words = (("Unknown", nothing), ("False", missing.message), ("Unknown", nothing))
        reason = missing.reason
        if reason is Reason.TOO_MANY_CLUSTERS:
            not_asked = "the operator does not connect to this Slurm"
            words = (("False", missing.message), ("Unknown", not_asked), ("Unknown", not_asked))
    elif slurm is None or slurm.contact.state is ContactState.CONNECTING:
        known = _known(snapshot)
        if known:
            return known
        words, reason = (("Unknown", "no answer yet"),) * 3, Reason.CONNECTING
    else:
        words, reason = _troubled(slurm.contact.trouble, slurm.contact.why + _remedy(snapshot, slurm.contact.trouble))
    return {
        kind: (status, Reason.AS_EXPECTED if status == "True" else reason, why)
        for kind, (status, why) in zip(CONTACT, words, strict=True)
    }


def _known(snapshot: Snapshot) -> Mapping[ClusterCondition, Shown]:
    """The conditions in the status of a Slurm that served; empty if it did not, or is another one now."""
    before, server = snapshot.cluster.status, naming.server(snapshot.cluster)
    stored = {kind: find(before.conditions, kind) for kind in CONTACT}
    true = {kind: one for kind, one in stored.items() if one is not None and one.status == "True"}
    same = len(true) == len(CONTACT) and before.server == server and bool(snapshot.server)
    return {kind: ("True", Reason.AS_EXPECTED, one.message) for kind, one in true.items()} if same else {}


def _remedy(snapshot: Snapshot, trouble: Trouble) -> str:
    """What it means that a slurmctld of ours refuses all tokens; it is the only one that knows which key it has."""
    cluster, source = snapshot.cluster, naming.jwt_key(snapshot.cluster)
    if trouble is not Trouble.UNAUTHORIZED or cluster.spec.external or source is None:
        return ""
    return (
        f"; if this lasts, clocks differ, or slurmctld has another key than {source.key} of Secret {source.secret}: "
        "docs/troubleshooting.md says what to do"
    )


def _troubled(trouble: Trouble, why: str) -> tuple[tuple[tuple[Word, str], ...], Reason]:
    """Status and message for slurmrestd, token and slurmctld; and the reason of those that are not True."""
    match trouble:
        case Trouble.NONE:
            return (("True", ""),) * 3, Reason.AS_EXPECTED
        case Trouble.CONTROLLER_DOWN:
            return (("True", ""), ("Unknown", "only slurmctld can tell"), ("False", why)), Reason.CONTROLLER_DOWN
        case Trouble.UNAUTHORIZED:
            return (("True", ""), ("False", why), ("Unknown", "not to be asked without a token")), Reason.UNAUTHORIZED
        case Trouble.UNSUPPORTED:
            return (("False", why), ("Unknown", ""), ("Unknown", "")), Reason.UNSUPPORTED_VERSION
        case Trouble.NO_ANSWER | Trouble.OTHER:
            return (("False", why), ("Unknown", ""), ("Unknown", "")), Reason.SLURM_UNREACHABLE
