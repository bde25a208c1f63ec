"""The part about accounting: keeps its Secrets, asks slurmdbd, and shows what `condition` says of it. Pure."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from typing_extensions import override

from slinky_api.conditions import ClusterCondition
from slinky_api.events import EventReason
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.actions import Action, Ask, EmitEvent, KeepKeys, MakePassword, PutKeyBack
from slinky_operator.cluster.daemons import metadata
from slinky_operator.cluster.daemons.component import Materials
from slinky_operator.cluster.part import Part, Shown
from slinky_operator.cluster.parts.accounting import in_conf, slurmctld_addresses, slurmdbd_conf, stored, variants
from slinky_operator.cluster.parts.accounting.condition import SlurmdbdTrial, of_accounting
from slinky_operator.cluster.parts.accounting.mariadb import MARIADB
from slinky_operator.cluster.parts.accounting.question import AccountingQuestion, last_answer
from slinky_operator.cluster.parts.accounting.slurmdbd import SLURMDBD
from slinky_operator.cluster.parts.keys import stored_keys
from slinky_operator.cluster.parts.keys.findings import Keys
from slinky_operator.cluster.pass_state import PassState
from slinky_operator.cluster.trials.engine import Stage, Trial
from slinky_operator.kube.events import EventType
from slinky_operator.kube.objects import Object
from slinky_operator.slurm import naming
from slinky_operator.slurm.conf import Parsed
from slinky_operator.slurm.pod_templates.templates import RefusedFragment


class AccountingPart(Part):
    """slurmdbd and its database."""

    name = "accounting"
    condition = ClusterCondition.ACCOUNTING_READY
    degrades = True

    @override
    def secrets(self, cluster: Cluster, node_sets: Iterable[Object]) -> Iterable[str]:
        return stored.names(cluster)

    @override
    def shown(self, state: PassState) -> Shown | None:
        snapshot = state.snapshot
        daemons = [one for one in (MARIADB, SLURMDBD) if one.is_wanted(snapshot.cluster)]
        stuck = dict.fromkeys(trouble for one in daemons for trouble in one.troubles(snapshot, state.wall))
        return of_accounting(snapshot, stuck, state.found(SlurmdbdTrial).trial)

    @override
    def fields(self, state: PassState) -> Mapping[str, Any]:
        return {"slurmctld_addresses": slurmctld_addresses.kept(state.snapshot)}


ACCOUNTING: Final = AccountingPart()


ASK_EVERY: Final = 30.0
"""Seconds between two queries of a slurmdbd that answers."""

ASK_EVERY_IN_VAIN: Final = 5.0
"""The same if it does not, or knows no slurmctld of the Cluster."""


def keep_accounting(state: PassState) -> Iterable[Action]:
    """Make the password of the database, and write what the daemons mount, as far as it is known."""
    snapshot, keys = state.snapshot, state.found(Keys)
    stale = slurmdbd_conf.leftovers(snapshot)
    if snapshot.cluster.deleting:
        return stale
    wanted = stored.contents(snapshot)
    if wanted.needs_password:
        return (*stale, *_password(state))
    # Versions are derived from the keys: nothing is written with a key that is not that of the daemons.
    if keys.held_by_slurm is not None or not keys.mountable:
        return stale
    trial = _tried(state, wanted)
    state.note(SlurmdbdTrial(trial))
    state.wake_up(trial.wake_up)
    # The database's Secret waits too, so that both daemons keep one password.
    written = _generated(state, wanted) if trial.stage is Stage.PASSED else ()
    return (*trial.actions, *written)


def ask_accounting(state: PassState) -> Iterator[Action]:
    """Ask slurmdbd, through slurmrestd, if slurm.conf names it and the last answer is old enough."""
    snapshot = state.snapshot
    if variants.wanted(snapshot.cluster) is None or not in_conf.has_accounting(state.mounted.lines):
        return
    if not snapshot.slurm_answers:
        return
    last = last_answer(snapshot.memory.answers)
    due = 0.0
    if last is not None:
        good = not last.why and bool(last.controller)
        due = last.at + (ASK_EVERY if good else ASK_EVERY_IN_VAIN) - state.now
    if due <= 0:
        yield Ask(AccountingQuestion())
    state.wake_up(due if due > 0 else ASK_EVERY_IN_VAIN)


def _tried(state: PassState, wanted: stored.Contents) -> Trial:
    """Whether slurmdbd may take its next configuration."""
    snapshot, template = state.snapshot, None
    if variants.runs_slurmdbd(snapshot.cluster) and not stored.holds(
        snapshot, naming.accounting(snapshot.cluster.name), wanted
    ):
        # A template that is refused is reported by the step `write_daemons`, and the running pod stays.
        with contextlib.suppress(RefusedFragment):
            materials = Materials(snapshot, state.images, Parsed(), {})
            template = SLURMDBD.workload(materials).body["spec"]["template"]["spec"]
    return slurmdbd_conf.trial(state.view, wanted, template)


def _password(state: PassState) -> Iterator[Action]:
    snapshot, cluster = state.snapshot, state.snapshot.cluster
    name, copy = naming.database_password(cluster.name), naming.database(cluster.name)
    if stored_keys.denied(snapshot, name, state.now) is not None:
        return
    body = _body(state, name, naming.COMPONENT_DATABASE)
    known = stored.value_in(snapshot, copy, stored.PASSWORD)
    if known:
        words = f"Secret {name} with the password of MariaDB was missing, and has been created again with it"
        tell = EmitEvent(snapshot.raw, EventType.WARNING, EventReason.PASSWORD_RESTORED, words)
        yield PutKeyBack(body, stored.PASSWORD, known, "", tell)
        return
    yield MakePassword(body, stored.PASSWORD)
    if ("StatefulSet", copy) in snapshot.children:
        words = (
            f"the password of MariaDB was lost with Secrets {name} and {copy}: a new one is made, and MariaDB and "
            "slurmdbd are restarted with it"
        )
        yield EmitEvent(snapshot.raw, EventType.WARNING, EventReason.PASSWORD_REPLACED, words)


def _generated(state: PassState, wanted: stored.Contents) -> Iterator[Action]:
    snapshot = state.snapshot
    components = {
        naming.database(snapshot.cluster.name): naming.COMPONENT_DATABASE,
        naming.accounting(snapshot.cluster.name): naming.COMPONENT_ACCOUNTING,
    }
    for name, data in wanted.secrets.items():
        if stored.holds(snapshot, name, wanted) or stored_keys.denied(snapshot, name, state.now) is not None:
            continue
        encoded = {key: base64.b64encode(value).decode() for key, value in sorted(data.items())}
        yield KeepKeys({**_body(state, name, components[name]), "data": encoded})


def _body(state: PassState, name: str, component: str) -> Object:
    about = metadata(state.snapshot.cluster, name, component)
    return {"apiVersion": "v1", "kind": "Secret", "metadata": about, "type": "Opaque"}
