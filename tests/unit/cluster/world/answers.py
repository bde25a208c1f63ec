"""What Slurm, slurmdbd, the agents and the daemons answer to the operator's questions, at once and as the world is.

An answer is noted as the operator notes it. Who asks is in `effects`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from slinky_api.v1alpha1.cluster.status import JobCounts
from slinky_operator.cluster.daemons import volumes
from slinky_operator.cluster.parts.accounting.question import AccountingQuestion
from slinky_operator.cluster.parts.accounts import wanted
from slinky_operator.cluster.parts.accounts.comparison import Comparison, Counts
from slinky_operator.cluster.parts.accounts.question import AccountsQuestion
from slinky_operator.cluster.parts.identity.question import Directory, DirectoryQuestion
from slinky_operator.cluster.parts.job_counts.question import Jobs, JobsQuestion
from slinky_operator.cluster.parts.keys.key_trial import KeyQuestion, KeyTrial
from slinky_operator.cluster.parts.keys.proof.answers import KeyProof
from slinky_operator.cluster.parts.keys.proof.question import KeySetQuestion
from slinky_operator.cluster.parts.maintenance.question import ReservationsQuestion, Reserved
from slinky_operator.cluster.parts.slurmctld.claim_question import ClaimQuestion
from slinky_operator.cluster.parts.volumes.question import VolumesQuestion
from slinky_operator.cluster.question import Question
from slinky_operator.cluster.rollout.agent_questions import FilesQuestion, Mounted, Names, NamesQuestion
from slinky_operator.cluster.rollout.slurm_questions import PartitionStates, StatesQuestion, UseQuestion
from slinky_operator.pod_programs.agent.files import expected
from slinky_operator.pod_programs.agent.hosts import names_in
from slinky_operator.slurm.pods.volume_room import Volumes
from tests.unit.cluster.world.state import State


def answer(world: State, question: Question[Any]) -> None:  # noqa: C901, PLR0912 - one each
    """Let a question be answered, and the answer be noted."""
    note = world.memory.answers.note
    match question:
        case KeyQuestion():
            note(KeyQuestion, _tried(world, question))
        case UseQuestion():
            note(UseQuestion, replace(world.use, asked_at=world.now, hash=question.hash))
        case StatesQuestion():
            note(StatesQuestion, PartitionStates(world.now, question.hash, world.states))
        case FilesQuestion():
            files = expected(world.stale or world.children["ConfigMap", "slurm-config"]["data"])
            note(FilesQuestion, Mounted(question.pod["metadata"]["uid"], world.now, files))
        case NamesQuestion():
            note(NamesQuestion, _names(world, question.pod["metadata"]["uid"]))
        case DirectoryQuestion():
            note(DirectoryQuestion, Directory(question.pod["metadata"]["uid"], world.now, dict(world.offline)))
        case VolumesQuestion():
            rooms = {name: world.rooms[name] for name in volumes.of_pod(question.pod)}
            uid, name = question.pod["metadata"]["uid"], question.pod["metadata"]["name"]
            note(VolumesQuestion, Volumes(uid, world.now, rooms), name)
        case KeySetQuestion():
            note(KeySetQuestion, _proven(world, question))
        case ReservationsQuestion():
            made = frozenset(one.name for one in question.wanted)
            note(ReservationsQuestion, Reserved(world.now, question.wanted, made))
        case AccountingQuestion():
            note(AccountingQuestion, replace(world.accounting, at=world.now))
        case AccountsQuestion():
            note(AccountsQuestion, _compared(world, question))
        case JobsQuestion():
            note(JobsQuestion, Jobs(world.now, 0.0, JobCounts()))
        case ClaimQuestion():
            # Nobody looks: each test says what the claim shows.
            return
        case _:
            raise AssertionError(f"no answer to {question}")


def _tried(world: State, question: KeyQuestion) -> KeyTrial:
    """Whether slurmctld takes a key."""
    before = world.memory.answers.of(KeyQuestion)
    attempts = before.attempts if before is not None and before.key == question.key else 0
    taken = world.accepts in {None, question.key}
    return KeyTrial(question.key, world.now, taken, attempts + 1, "" if taken else "Protocol authentication error")


def _names(world: State, pod_uid: str) -> Names:
    """What the agent reports of the file that is mounted."""
    named = frozenset(names_in(world.slurm_conf))
    return Names(pod_uid, world.now, named - world.missing, named & world.missing)


def _proven(world: State, question: KeySetQuestion) -> KeyProof:
    """What daemons prove of the keys that they have."""
    before = world.memory.answers.of(KeySetQuestion)
    kept = before.found if before is not None and before.set == question.set.id else {}
    found = {**kept, **{one.id: world.proves(one, question.set, world.now) for one in question.asked}}
    rounds = before.rounds + 1 if before is not None and kept else 1
    return KeyProof(
        question.set.id, question.since, world.now, rounds, {one: found[one] for one in question.all & {*found}}
    )


def _compared(world: State, question: AccountsQuestion) -> Comparison:
    """What slurmdbd has of the accounts: all that is wanted."""
    request = question.request
    asked = wanted.wanted(request.tree, request.cluster, request.unknown)
    sizes = len(asked.accounts), len(asked.users), len(asked.associations), len(asked.qos)
    return Comparison(
        request.version, world.now, counts=Counts(*sizes), problems=asked.problems, settled=not asked.problems
    )
