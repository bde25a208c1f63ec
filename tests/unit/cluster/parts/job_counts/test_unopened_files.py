"""Jobs that end with 0:53 are reported once, with their files, and few at a time."""

from __future__ import annotations

from slinky_operator.cluster.actions import EmitEvent
from slinky_operator.cluster.parts.job_counts import unopened_files as unopened
from slinky_operator.cluster.parts.job_counts.question import Jobs, JobsQuestion
from slurm_client.models import JobStateEntry
from slurm_client.models.job import ExitCode, Job, JobState
from tests.unit.cluster.rollout_stories import settled


def entry(number: int | str, *words: str) -> JobStateEntry:
    return JobStateEntry(id=str(number), state=JobState.from_words(words or ("FAILED",)))


def job(number: int, **more: object) -> Job:
    given = {"exit_code": ExitCode(signal=53), "user": "alice", "nodes": ("cpu-0",), **more}
    return Job(id=number, **given)  # type: ignore[arg-type]


def test_only_jobs_that_failed_since_the_last_count_are_asked_for() -> None:
    states = [entry(1), entry(2, "COMPLETED"), entry(3, "FAILED", "COMPLETING"), entry("7_2")]
    first = unopened.failed(states, None)
    assert first == unopened.Failed(frozenset({"1", "7_2"}))
    then = unopened.failed([*states, entry(9)], first.known)
    assert then == unopened.Failed(frozenset({"1", "7_2", "9"}), ("9",))
    # Slurm forgets them, and so does the operator.
    assert unopened.failed([], then.known).known == frozenset()


def test_thousands_that_fail_at_once_cost_a_few_questions() -> None:
    found = unopened.failed((entry(number) for number in range(20_000)), frozenset())
    assert len(found.ask) == unopened.MOST_ASKED
    assert found.known == {str(number) for number in range(10_000, 20_000)}


def test_the_files_are_named_and_what_may_be_missing() -> None:
    path = "/home/alice/slurm-5.out"
    others = job(6, exit_code=ExitCode(return_code=1))
    said = unopened.words([job(5, standard_output_expanded=path, standard_error_expanded=path), others])
    assert said.startswith("Slurm could not open a file of job 5 of alice on cpu-0 (output /home/alice/slurm-5.out).")
    assert "home folder" in said
    assert "job 6" not in said
    assert unopened.words([job(6, exit_code=ExitCode(signal=9)), job(7, exit_code=None)]) == ""


def test_texts_of_users_are_cut_and_stay_on_their_line() -> None:
    path = "/home/a\nb" + "x" * 5_000
    said = unopened.words([job(number, user="u" * 5_000, standard_output_expanded=path) for number in range(4)])
    assert "\n" not in said
    assert len(said) < 4 * (3 * unopened.LONGEST + 100) + 400


def test_an_event_tells_of_them_once() -> None:
    world = settled()
    world.memory.answers.note(JobsQuestion, Jobs(world.now, 0.0, None, unopened="Slurm could not open a file of job 5"))

    def told() -> list[str]:
        events = [one for one in world.plan().actions if isinstance(one, EmitEvent)]
        return [one.message for one in events if one.reason == unopened.REASON]

    assert told() == ["Slurm could not open a file of job 5"]
    world.memory.last_events[unopened.REASON] = "Slurm could not open a file of job 5"
    assert not told()


def test_a_number_that_no_job_can_have_is_none() -> None:
    assert [unopened.number(text) for text in ("7", "7_3", "7+1", "", "x", "9" * 5_000)] == [7, 7, 7, 0, 0, 0]
