"""Prints one stream of a job until the job has ended and its file is read to the end, and exits as the job did.

What is not the job's own output is one line with a prefix, on the standard error: that the job runs again, that a file
was truncated, or why there is nothing to read. Container runtimes keep both together, in order.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from slinky_operator.pod_programs.joblogs.follower import job_file
from slinky_operator.pod_programs.joblogs.follower.job_file import InvalidJobFile, Job, JobState, Place
from slinky_operator.pod_programs.joblogs.follower.sources import Reading, ReadResult, Sink, Source, source_of

PREFIX: Final = "job-logs: "

WAIT_SECONDS: Final = 4.0
"""How long one attempt waits for more; then it is seen whether the job has ended."""

LOOK_SECONDS: Final = 0.5
"""Between looks at the job's file while there is nothing to read."""

MAX_PAUSE: Final = 5.0
"""Seconds between attempts that fail."""

MISSING_PAUSE: Final = 1.0
"""Maximum seconds between looks for a file that is not there yet."""

PATIENCE: Final = 30.0
"""Seconds for which a file is looked for, or a server asked, once the job has ended."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How often a follower looks, and when it gives up; see the constants."""

    wait: float = WAIT_SECONDS
    look: float = LOOK_SECONDS
    max_pause: float = MAX_PAUSE
    patience: float = PATIENCE


class Follower:
    """Follows one stream.

    Parameters
    ----------
    path
        The job's file.
    stream
        `stdout` or `stderr`.
    sink
        What takes the job's output.
    note
        What takes lines of the follower's own.
    clock, sleep
        Monotonic seconds, and how to let them pass.
    """

    def __init__(
        self,
        path: Path,
        stream: str,
        *,
        sink: Sink,
        note: Callable[[str], None],
        pace: Pace = Pace(),
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._path, self._stream = path, stream
        self._sink, self._note = sink, note
        self._pace, self._clock, self._sleep = pace, clock, sleep
        self._place: Place | None = None
        self._source: Source | None = None
        self._attempt: int | None = None
        self._offset = 0
        self._noted = ""
        self._pause = pace.look
        self._ended_at: float | None = None

    def run(self) -> int:
        """Follow to the end, and return the exit code of the job."""
        while True:
            job = self._job()
            if job is None:
                self._sleep(self._pace.look)
                continue
            place = job.streams.get(self._stream)
            ended = job.state is JobState.ENDED
            if ended and self._ended_at is None:
                self._ended_at = self._clock()
            self._turn_to(job, place)
            if self._place is None or self._source is None:
                if ended:
                    return job.status
                self._sleep(self._pace.look)
                continue
            # Whether the job has ended was read before: what is read now is all that there will be.
            reading = self._source.read(self._place, self._offset, 0.0 if ended else self._pace.wait, self._sink)
            if self._is_done(reading, ended=ended):
                self._source.close()
                return job.status

    def _job(self) -> Job | None:
        try:
            return job_file.read(self._path)
        except InvalidJobFile as error:
            self._say_once(str(error))
            return None

    def _turn_to(self, job: Job, place: Place | None) -> None:
        """Begin with another file if the job has moved, or was started again."""
        moved = place is not None and (self._place is None or not self._place.is_same(place))
        again = self._attempt is not None and job.attempt != self._attempt
        if self._place is not None and (moved or (again and place is None)):
            self._finish()
        if again or moved:
            if again:
                where = f" on node {job.node}" if job.node else ""
                self._note(f"Slurm has started the job again (restart {job.attempt}){where}; its output starts over")
            elif self._place is not None:
                self._note("the output of the job is in another file now, which is shown from its beginning")
            if self._source is not None:
                self._source.close()
            self._place, self._source = None, None
            self._offset, self._noted = 0, ""
        self._attempt = job.attempt
        if place is not None:
            if self._source is None:
                self._source = source_of(place)
            # The token may be another one.
            self._place = place

    def _finish(self) -> None:
        """Print what is left of a file that is about to be left."""
        if self._source is None or self._place is None:
            return
        while True:
            reading = self._source.read(self._place, self._offset, 0.0, self._sink)
            self._offset += reading.copied
            if reading.outcome is not ReadResult.DATA:
                return

    def _is_done(self, reading: Reading, *, ended: bool) -> bool:
        self._offset += reading.copied
        match reading.outcome:
            case ReadResult.DATA:
                self._pause, self._noted = self._pace.look, ""
                return False
            case ReadResult.END:
                self._pause, self._noted = self._pace.look, ""
                return ended
            case ReadResult.TRUNCATED:
                self._note(f"the file was truncated or replaced ({reading.why}); it is shown from its beginning")
                self._offset = 0
                return False
            case ReadResult.MISSING:
                return self._give_up_or_wait(f"no output: {reading.why}", ended=ended, say=ended, most=MISSING_PAUSE)
            case ReadResult.FAILED:
                return self._give_up_or_wait(reading.why, ended=ended, say=True, most=self._pace.max_pause)

    def _give_up_or_wait(self, why: str, *, ended: bool, say: bool, most: float) -> bool:
        if ended and self._ended_at is not None and self._clock() - self._ended_at >= self._pace.patience:
            after = f" after byte {self._offset}" if self._offset else ""
            self._note(f"the job has ended; its output{after} cannot be read: {why}")
            return True
        if say:
            self._say_once(why)
        self._sleep(min(self._pause, most))
        self._pause = min(2 * self._pause, self._pace.max_pause)
        return False

    def _say_once(self, why: str) -> None:
        if why != self._noted:
            self._noted = why
            self._note(why)


def to_descriptor(descriptor: int) -> Sink:
    """A sink that writes everything to a descriptor."""

    def write(piece: memoryview) -> None:
        while piece:
            piece = piece[os.write(descriptor, piece) :]

    return write


def noting(descriptor: int) -> Callable[[str], None]:
    """Writes lines of the follower's own, each in one piece."""
    sink = to_descriptor(descriptor)

    def note(line: str) -> None:
        sink(memoryview(f"{PREFIX}{line}\n".encode(errors="replace")))

    return note
