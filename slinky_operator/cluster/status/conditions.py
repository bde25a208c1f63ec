"""Conditions of a Cluster, without their times. Pure.

`Ready` means one thing: Slurm serves. slurmrestd answers, accepts the operator's token, and reaches slurmctld. What
keeps a Cluster from its spec while Slurm serves is shown by `ConfigApplied` and `Degraded`, and what needs nobody's
help by `Progressing`.

True conditions are kept until there is a first answer: an operator that has just started, or connects with another
token, knows nothing yet, and a Cluster must not seem to have been unreachable because of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from slinky_api.conditions import ClusterCondition, Reason, find
from slinky_api.v1alpha1.common import Condition
from slinky_operator.cluster.observe import SlurmView, Snapshot
from slinky_operator.cluster.parts.accounting.condition import of_accounting
from slinky_operator.cluster.parts.accounts.condition import of_accounts
from slinky_operator.cluster.parts.connection.slurm_connection import Missing
from slinky_operator.cluster.parts.daemons import DAEMONS
from slinky_operator.cluster.parts.exporter.condition import Workload, of_exporter
from slinky_operator.cluster.parts.identity.condition import of_directory
from slinky_operator.cluster.parts.keys.signing import Signing
from slinky_operator.cluster.parts.upgrade.order import Upgrade
from slinky_operator.cluster.parts.volumes.condition import of_volumes
from slinky_operator.cluster.rollout.config.draft import Rollout
from slinky_operator.cluster.rollout.preflight.replacement import Replacement, Stage
from slinky_operator.cluster.status.not_supported import not_supported
from slinky_operator.cluster.status.out_of_service import OutOfService, message
from slinky_operator.cluster.trials.engine import Stage as StageOfTrial
from slinky_operator.cluster.trials.engine import Trial
from slinky_operator.identity import users
from slinky_operator.reconcile.pod_trouble import DaemonTrouble
from slinky_operator.slurm import naming
from slinky_operator.slurm.connection.contact import ContactState, Trouble

Word = Literal["True", "False", "Unknown"]

SERVES: Final = "slurmctld and slurmrestd answer"

CONTACT: Final = (ClusterCondition.API_REACHABLE, ClusterCondition.TOKEN_VALID, ClusterCondition.CONTROLLER_UP)
"""The conditions that `Ready` depends on."""

ON_ITS_WAY: Final = frozenset(
    {
        Reason.CONFIG_PENDING,
        Reason.CONNECTING,
        Reason.DAEMONS_STARTING,
        Reason.KEY_PENDING,
        Reason.ACCOUNTS_PENDING,
        Reason.PARTITION_IN_USE,
        Reason.NODES_IN_USE,
        Reason.GRES_IN_USE,
        Reason.WAITING_FOR_JOBS,
        Reason.CLAIM_GROWING,
        Reason.DELETING,
    }
)
"""Reasons that need no action."""


@dataclass(frozen=True, slots=True)
class Findings:
    """The findings of the plan, for the status."""

    rollout: Rollout | None
    """`None` for an external Cluster."""

    missing: Missing | None
    """Why there is no connection."""

    key: Missing | None
    """What is wrong with a key that daemons have, or will have."""

    refused: tuple[str, ...]
    """Objects that could not be written, and why."""

    deleting: str = ""
    """What a deletion waits for."""

    starting: bool = False
    """Whether the daemons have never answered yet."""

    replacement: Replacement = Replacement(Stage.FREE)  # noqa: RUF009 - frozen
    """What is known of the pod that will replace slurmctld's."""

    slurmdbd: Trial = Trial(StageOfTrial.PASSED)  # noqa: RUF009 - frozen
    """What is known of slurmdbd's next configuration."""

    stuck: tuple[DaemonTrouble, ...] = ()
    """Why pods of the daemons do not start."""

    claims_refused: tuple[str, ...] = ()
    """Settings of claims that cannot be carried out, and why."""

    claims_growing: tuple[str, ...] = ()
    """Claims whose volumes are still to grow."""

    upgrade: Upgrade = Upgrade()  # noqa: RUF009 - frozen
    """Which daemon gets another image, and which wait for it."""

    identity: users.Trouble | None = None
    """What is wrong with the source of users."""

    signing: Signing = Signing()  # noqa: RUF009 - frozen
    """What is known of the private key of tokens; without it, tokens of auth/jwt go on."""

    weak_keys: tuple[str, ...] = ()
    """What is wrong with keys that daemons run with, and go on with."""

    slurmd_image: str | None = None
    """Image for NodeSets that name none; `None` for an external Cluster."""

    exporter: Workload = Workload()  # noqa: RUF009 - frozen
    """What is known of the exporter's pod."""

    hung: str = ""
    """When slurmctld was ended because it waited for itself, and what to do."""

    off: tuple[str, ...] = ()
    """Fields of the spec that the operator's settings have switched off (`not_supported.SWITCHED_OFF`)."""


def conditions_of(snapshot: Snapshot, findings: Findings, bad: OutOfService) -> list[Condition]:
    """All conditions of a Cluster.

    Parameters
    ----------
    bad
        Nodes of Slurm that are out of service, as far as Slurm answers.
    """
    contact = list(_contact(snapshot, findings))
    ready = _ready(contact, findings)
    found = [
        *(_explained(one, findings) for one in contact),
        ready,
        _progressing(ready, findings, deleting=snapshot.cluster.deleting),
    ]
    accounting = of_accounting(snapshot, findings.stuck, findings.slurmdbd)
    accounts = of_accounts(snapshot)
    exporter = of_exporter(snapshot, findings.exporter)
    rooms = of_volumes(snapshot)
    told = (
        (ClusterCondition.VOLUMES_HAVE_ROOM, rooms),
        (ClusterCondition.ACCOUNTING_READY, accounting),
        (ClusterCondition.ACCOUNTS_APPLIED, accounts),
        (ClusterCondition.EXPORTER_READY, exporter),
    )
    found.append(_degraded(ready, findings, not_supported(snapshot.cluster.spec, findings.off), told))
    rollout = findings.rollout
    if rollout is not None:
        status: Word = "True" if rollout.applied else "False"
        found.append(condition(ClusterCondition.CONFIG_APPLIED, status, rollout.reason, rollout.message))
    directory = of_directory(snapshot)
    if directory is not None:
        found.append(condition(ClusterCondition.DIRECTORY_REACHABLE, *directory))
    found += [condition(kind, *one) for kind, one in told if one is not None]
    if findings.hung:
        found.append(condition(ClusterCondition.CONTROLLER_HUNG, "True", Reason.WAITED_FOR_ITSELF, findings.hung))
    found.append(_nodes(snapshot, bad))
    if snapshot.cluster.deleting:
        found.append(_deleting(snapshot, findings))
    return found


def is_applied_while_deleting(snapshot: Snapshot) -> bool:
    """Whether a Cluster that is being deleted was changed after that: the change goes with it."""
    before = find(snapshot.cluster.status.conditions, ClusterCondition.DELETING)
    if not snapshot.cluster.deleting or before is None:
        return False
    was_changed = (before.observed_generation or 0) < snapshot.cluster.metadata.generation
    return was_changed or before.reason == Reason.APPLIED_WHILE_DELETING


def _deleting(snapshot: Snapshot, findings: Findings) -> Condition:
    kind, about = ClusterCondition.DELETING, snapshot.cluster.metadata
    if not is_applied_while_deleting(snapshot):
        return condition(kind, "True", Reason.DELETING, findings.deleting)
    words = (
        f"{findings.deleting}. The Cluster was changed after its deletion, and goes with that change. Wait until it "
        f"has gone (kubectl wait --for=delete clusters.slinky.slurm.net/{about.name} --namespace {about.namespace}), "
        "then apply it again"
    )
    return condition(kind, "True", Reason.APPLIED_WHILE_DELETING, words)


def condition(kind: ClusterCondition, status: Word, reason: Reason, message: str = "") -> Condition:
    """A condition without a time."""
    return Condition(type=str(kind), status=status, reason=str(reason), message=message[:32768])


# Whether Slurm serves


def _contact(snapshot: Snapshot, findings: Findings) -> Iterable[Condition]:
    """Whether slurmrestd answers, accepts the token, and reaches slurmctld."""
    slurm, missing = snapshot.slurm, findings.missing
    words: tuple[tuple[Word, str], ...]
    if missing is not None:
        nothing = "there is nothing to connect with"
        words = (("Unknown", nothing), ("False", missing.message), ("Unknown", nothing))
        reason = missing.reason
        if reason is Reason.TOO_MANY_CLUSTERS:
            not_asked = "the operator does not connect to this Slurm"
            words = (("False", missing.message), ("Unknown", not_asked), ("Unknown", not_asked))
    elif slurm is None or _is_connecting(slurm):
        known = _known(snapshot)
        if known:
            yield from known
            return
        words, reason = (("Unknown", "no answer yet"),) * 3, Reason.CONNECTING
    else:
        words, reason = _troubled(slurm.contact.trouble, slurm.contact.why)
    for kind, (status, why) in zip(CONTACT, words, strict=True):
        yield condition(kind, status, Reason.AS_EXPECTED if status == "True" else reason, why)


def _known(snapshot: Snapshot) -> Sequence[Condition]:
    """The conditions in the status of a Slurm that served; empty if it did not, or is another one now."""
    before, server = snapshot.cluster.status, naming.server(snapshot.cluster)
    stored = [one for kind in CONTACT if (one := find(before.conditions, kind)) is not None and one.status == "True"]
    same = len(stored) == len(CONTACT) and before.server == server and bool(snapshot.server)
    return stored if same else ()


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


def _ready(contact: Sequence[Condition], findings: Findings) -> Condition:
    """Whether Slurm serves; if not, a known cause comes before mere symptoms."""
    kind = ClusterCondition.READY
    # A known fault explains what cannot be known.
    by_kind = {one.type: one for one in contact}
    ordered = [by_kind[one] for one in (ClusterCondition.TOKEN_VALID, *CONTACT)]
    seen = next((one for status in ("False", "Unknown") for one in ordered if one.status == status), None)
    if seen is None:
        return condition(kind, "True", Reason.AS_EXPECTED, SERVES)
    reason, words = _cause(seen, findings)
    return condition(kind, "False", reason, words)


def _cause(seen: Condition, findings: Findings) -> tuple[Reason, str]:  # noqa: PLR0911 - one for each cause
    """Why Slurm does not serve."""
    key, refused = findings.key, _refused(findings.rollout)
    reason, words = Reason(seen.reason), f"{seen.type}: {seen.message}"
    if key is not None and key.reason is not Reason.KEY_PENDING:
        return key.reason, key.message
    if findings.refused:
        return Reason.CHILD_REFUSED, "; ".join(findings.refused)
    if findings.missing is not None:
        return reason, words
    if refused is not None:
        words = f"{words}; {ClusterCondition.CONFIG_APPLIED}: {refused.message}"
    if findings.stuck:
        words = f"{'; '.join(map(str, findings.stuck))}; {words}"
        return Reason.DAEMON_STUCK if findings.starting or reason in ON_ITS_WAY else reason, words
    if findings.starting and refused is not None:
        return refused.reason, refused.message
    if findings.starting:
        return Reason.DAEMONS_STARTING, f"the daemons are starting; {words}"
    return reason, words


def _refused(rollout: Rollout | None) -> Rollout | None:
    """The rollout, if the configuration cannot be applied without somebody's help."""
    if rollout is None or rollout.applied or rollout.reason in ON_ITS_WAY:
        return None
    return rollout


def _explained(one: Condition, findings: Findings) -> Condition:
    """The condition, with what is known of the daemon's pod before what the connection has shown."""
    daemon = _DAEMONS.get(one.type)
    found = [str(trouble) for trouble in findings.stuck if trouble.daemon == daemon]
    if one.status == "True" or not found or findings.missing is not None:
        return one
    return one.model_copy(update={"message": "; ".join(filter(None, (*found, one.message)))[:32768]})


_DAEMONS: Final[Mapping[str, str]] = {one.condition: one.daemon for one in DAEMONS if one.condition is not None}


def _nodes(snapshot: Snapshot, bad: OutOfService) -> Condition:
    kind, slurm = ClusterCondition.NODES_OUT_OF_SERVICE, snapshot.slurm
    if slurm is not None and slurm.contact.state is ContactState.READY:
        if bad:
            return condition(kind, "True", next(iter(bad)), message(bad))
        return condition(kind, "False", Reason.AS_EXPECTED)
    known = find(snapshot.cluster.status.conditions, kind)
    if known is not None and known.status != "Unknown" and (slurm is None or _is_connecting(slurm)):
        return known
    return condition(kind, "Unknown", Reason.SLURM_UNREACHABLE, "Slurm cannot be asked for its nodes")


def _is_connecting(slurm: SlurmView) -> bool:
    return slurm.contact.state is ContactState.CONNECTING


# What is in progress, and what needs help


def _progressing(ready: Condition, findings: Findings, *, deleting: bool) -> Condition:
    kind, rollout = ClusterCondition.PROGRESSING, findings.rollout
    keys = (findings.key, findings.signing.trouble)
    key = next((one for one in keys if one is not None and one.reason in ON_ITS_WAY), None)
    if deleting:
        return condition(kind, "True", Reason.DELETING, findings.deleting)
    trying = findings.replacement.message if findings.replacement.stage is Stage.TRYING else ""
    if findings.upgrade.message and findings.replacement.stage is not Stage.HELD:
        return condition(kind, "True", Reason.UPGRADING, "; ".join(filter(None, (findings.upgrade.message, trying))))
    found = [(Reason(ready.reason), ready.message)] if ready.status != "True" else []
    found += [(key.reason, key.message)] if key is not None else []
    found += [(rollout.reason, rollout.message)] if rollout is not None and not rollout.applied else []
    going = next((one for one in found if one[0] in ON_ITS_WAY), None)
    if going is None and trying:
        going = Reason.DAEMONS_STARTING, trying
    if going is None and findings.claims_growing:
        going = Reason.CLAIM_GROWING, "; ".join(findings.claims_growing)
    if going is not None:
        return condition(kind, "True", *going)
    return condition(kind, "False", Reason.AS_EXPECTED)


def _degraded(
    ready: Condition,
    findings: Findings,
    without_effect: str,
    told: Iterable[tuple[ClusterCondition, tuple[Word, Reason, str] | None]],
) -> Condition:
    """What needs somebody's help, the worst first."""
    kind, refused = ClusterCondition.DEGRADED, _refused(findings.rollout)
    found: list[tuple[Reason, str]] = []
    serves = ready.status == "True"
    if not serves and ready.reason not in ON_ITS_WAY:
        found.append((Reason(ready.reason), ready.message))
    found += _of_keys(findings)
    found += [(Reason.SECRET_INVALID, words) for words in findings.weak_keys]
    found += [(Reason.CHILD_REFUSED, words) for words in findings.refused]
    if refused is not None:
        found.append((refused.reason, refused.message))
    found += _of_users(findings)
    held = findings.replacement.message if findings.replacement.stage is Stage.HELD else ""
    upgrade = ((Reason.UPGRADE_REFUSED, findings.upgrade.refused), (Reason.REPLACEMENT_HELD_BACK, held))
    found += [(reason, words) for reason, words in upgrade if words]
    found += [(Reason.CLAIM_REFUSED, words) for words in findings.claims_refused]
    if findings.rollout is not None:
        found += _of_node_sets(findings.rollout)
    for about, one in told:
        found += _of_part(about, one)
    if serves:
        found += [(Reason.DAEMON_STUCK, str(one)) for one in findings.stuck if not one.passing]
    found += [(Reason.NOT_SUPPORTED, without_effect)] if without_effect else []
    if not found:
        return condition(kind, "False", Reason.AS_EXPECTED)
    # A text that is part of an earlier one is not repeated.
    said: list[str] = []
    for _, words in found:
        if not any(words in earlier for earlier in said):
            said.append(words)
    return condition(kind, "True", found[0][0], "; ".join(said))


def _of_keys(findings: Findings) -> Iterable[tuple[Reason, str]]:
    """What is wrong with keys."""
    for one in (findings.key, findings.signing.trouble):
        if one is not None and one.reason not in ON_ITS_WAY:
            yield one.reason, one.message


def _of_users(findings: Findings) -> Iterable[tuple[Reason, str]]:
    """What is wrong with the source of users: daemons start and run without."""
    if findings.identity is not None:
        yield findings.identity.reason, findings.identity.message


def _of_part(kind: ClusterCondition, found: tuple[Word, Reason, str] | None) -> Iterable[tuple[Reason, str]]:
    """What a part of a Cluster, without which Slurm serves, needs help with."""
    if found is not None and found[0] == "False" and found[1] not in ON_ITS_WAY:
        yield found[1], f"{kind}: {found[2]}"


def _of_node_sets(rollout: Rollout) -> Iterable[tuple[Reason, str]]:
    """What single NodeSets and nodes are left out of."""
    for one in rollout.rendered.refused:
        yield Reason.CONFIG_REFUSED, f"NodeSet {one.node_set}: {one.problem}"
    for untried in rollout.untried:
        yield Reason.CONFIG_UNTRIED, str(untried)
    if rollout.unaddressed:
        yield Reason.NODES_WITHOUT_ADDRESS, rollout.unaddressed
