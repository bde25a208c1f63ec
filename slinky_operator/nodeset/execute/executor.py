"""Carries out a plan: in order, concurrently where that is safe, and without a rule of its own.

Before anything that cannot be undone Slurm is queried again, and the answer is passed to the rules:
`pod_state.why_kept` for pods, `records.to_delete` for records, `drains.to_drain` and `drains.to_undrain` for drains. A
failed query is never an answer: the action is not executed, and the failure is returned.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from slinky_api.events import EventReason
from slinky_operator.kube import errors as kube_errors
from slinky_operator.nodeset.execute import (
    check_tables,
    create_pods,
    delete_pods,
    end_jobs,
    finalizer,
    owned_objects,
    slurm_writes,
)
from slinky_operator.nodeset.execute.context import MustWait, PassContext, PassOutcome, listed
from slinky_operator.nodeset.execute.patch_pods import Marks
from slinky_operator.nodeset.execute.queries import pod_queries, slurm_queries
from slinky_operator.nodeset.model import actions
from slinky_operator.nodeset.model.pods import guard
from slinky_operator.nodeset.model.pods.pod_facts import Pod
from slinky_operator.reconcile.writes.children import NameTaken
from slurm_client import errors as slurm_errors


class Executor:
    """Carries out plans for one NodeSet in one pass."""

    def __init__(self, context: PassContext) -> None:
        self.context = context

    async def carry_out(self, planned: Iterable[actions.Action]) -> PassOutcome:
        """Carry out actions in order; the failure of one does not prevent the others."""
        for action in planned:
            if self.context.outcome.slurm_error is not None and _asks_slurm(action):
                continue
            try:
                await self._one(action)
            except slurm_errors.NotFound as error:
                # A record has been deleted since it was queried: the next pass sees that.
                self.context.outcome.kept.append(f"Slurm: {error}")
            except (slurm_errors.InvalidRequest, slurm_errors.Conflict) as error:
                # Slurm is reachable and rejects this. Later actions query for themselves, and do not wait for it.
                self.context.outcome.refusals.append(f"Slurm refuses: {error}")
            except slurm_errors.SlurmError as error:
                self.context.outcome.slurm_error = error
            except kube_errors.KubeError as error:
                self.context.outcome.errors.append(error)
                if isinstance(
                    action,
                    actions.AddFinalizer
                    | actions.TakeOver
                    | actions.EnsureGuard
                    | actions.RemoveFinalizer
                    | actions.RecordRevision,
                ):
                    # The following actions depend on these.
                    break
            except (MustWait, NameTaken) as error:
                self.context.outcome.refusals.append(str(error))
                break
            finally:
                self._note_told()
        return self.context.outcome

    async def _one(self, action: actions.Action) -> None:  # noqa: C901, PLR0912, PLR0915 - one line for each
        context = self.context
        match action:
            case actions.AddFinalizer():
                await finalizer.add_finalizer(context)
            case actions.EnsureGuard():
                await self._ensure_guard(action.pods)
            case actions.TakeOver():
                await finalizer.take_over(context)
            case actions.MarkRecords():
                await slurm_writes.mark_records(context, action.pods)
            case actions.RemoveFinalizer():
                await finalizer.remove_finalizer(context, action)
            case actions.MarkRegistered():
                self._note_marks(await self._marks().registered(action.pods))
            case actions.Protect():
                self._note_marks(await self._marks().protect(action.pods))
            case actions.Adopt():
                await self._adopt(action.pods)
            case actions.Unprotect():
                await self._unprotect(action.pods)
            case actions.Show():
                self._note_marks(await self._marks().show(action.showings))
            case actions.ShowStates():
                self._note_marks(await self._marks().states(action.pods))
            case actions.Announce():
                self._note_marks(await self._marks().announce(action.times))
            case actions.Undrain():
                await slurm_writes.undrain_nodes(context, action.nodes)
            case actions.Drain():
                await slurm_writes.drain_nodes(context, action)
            case actions.SetTraits():
                await slurm_writes.set_traits(context, action.wanted)
            case actions.MarkDown():
                await slurm_writes.mark_down(context, action.nodes)
            case actions.EndDrains():
                await slurm_writes.end_drains(context, action)
            case actions.AskForEnds():
                found = await slurm_queries.recorded_ends(context.reach(), action.jobs, context.recorded, context.now())
                context.outcome.recorded = found
            case actions.AskForSteps():
                context.outcome.steps |= await pod_queries.ask_steps(context, action.questions)
            case actions.AskForRoom():
                context.outcome.rooms = await pod_queries.ask_room(context, action.pods)
            case actions.CancelForgotten():
                await end_jobs.cancel_forgotten(context, action)
            case actions.DeleteIdlePods():
                await delete_pods.delete_idle(context, action.pods)
            case actions.DeletePods():
                if action.forced:
                    await delete_pods.give_up(context, action.pods, action.blind)
                else:
                    await delete_pods.delete_checked(context, action.pods, for_health=action.for_health)
            case actions.ReplaceMachines():
                await self._replace_machines(action)
            case actions.Repair():
                await delete_pods.repair(context, action.pods)
            case actions.DeleteRecords():
                await slurm_writes.delete_records(context, action.nodes)
            case actions.RecordRevision():
                await owned_objects.record(context.kube, context.nodeset, context.revision, action)
            case actions.RenumberRevision():
                await owned_objects.renumber(context.kube, context.nodeset, action)
            case actions.DropRevisions():
                await owned_objects.drop(context.kube, context.nodeset, action)
            case actions.CreatePods():
                await create_pods.create(context, action)
            case actions.KeepChecks():
                await check_tables.keep(context, action)
            case actions.DeleteClaims():
                await owned_objects.delete_claims(context, action)
            case actions.MarkClaims():
                await owned_objects.mark_claims(context, action)

    async def _ensure_guard(self, unguarded: Sequence[Pod]) -> None:
        context = self.context
        await finalizer.ensure_guard(context)
        if unguarded:
            self._note_marks(await self._marks().guard(unguarded, context.guards[context.nodeset.uid]))
            names = listed([pod.name for pod in unguarded])
            context.warn(
                EventReason.GUARD_RESTORED,
                f"ConfigMap {guard.name(context.nodeset)}, which keeps pods until their jobs have ended, "
                f"had been taken from {names}; it is theirs again",
            )

    async def _adopt(self, pods: Sequence[Pod]) -> None:
        context = self.context
        if context.cluster is None:
            raise ValueError("pods cannot be given to a Cluster that is not there")
        failures = await self._marks().adopt(pods, context.cluster)
        self._note_marks(failures)
        if not failures:
            names = listed([pod.name for pod in pods])
            context.say(
                EventReason.PODS_ADOPTED, f"made for an earlier Cluster {context.cluster.name}, now this one's: {names}"
            )

    async def _unprotect(self, wanted: Sequence[Pod]) -> None:
        free = await delete_pods.evictable(self.context, wanted)
        if free:
            self._note_marks(await self._marks().unprotect(free))

    async def _replace_machines(self, action: actions.ReplaceMachines) -> None:
        """One after the other: there are few, and one that is refused delays no other."""
        context, keeper = self.context, self.context.machines
        if keeper is None:
            return
        owner = f"{context.nodeset.namespace}/{context.nodeset.name}"
        marks = {**dict.fromkeys(action.given_back), **dict(action.tries)}
        for name, mark in marks.items():
            done, waits = await (
                keeper.give_back(name, owner)
                if mark is None
                else keeper.go_on(name, mark, is_shown=name in action.shown)
            )
            if done:
                context.say(EventReason.MACHINE_REPLACED, done)
            if waits:
                context.outcome.machines[name] = waits

    def _note_told(self) -> None:
        """Record when Slurm was written to: a cache refreshed later shows it."""
        context = self.context
        if context.unseen:
            context.outcome.told_slurm_at = context.written_at if context.written_at is not None else context.clock()
        context.unseen, context.written_at = False, None

    def _marks(self) -> Marks:
        context = self.context
        return Marks(context.kube, context.nodeset, context.expectations, context.now)

    def _note_marks(self, failures: Sequence[Exception]) -> None:
        self.context.outcome.acted = True
        self.context.outcome.errors += failures


def _asks_slurm(action: actions.Action) -> bool:
    """Whether an action is useless while Slurm does not answer."""
    match action:
        case (
            actions.Undrain()
            | actions.Drain()
            | actions.SetTraits()
            | actions.MarkRecords()
            | actions.DeleteRecords()
            | actions.EndDrains()
        ):
            return True
        case actions.AskForEnds() | actions.AskForSteps() | actions.CancelForgotten():
            return True
        case actions.MarkDown() | actions.Repair():
            return True
        case actions.DeletePods():
            return not action.forced
        case actions.RemoveFinalizer():
            # A write that Slurm did not get is left to the next pass, which sees that Slurm is unreachable.
            return not action.anyway
        case _:
            return False
