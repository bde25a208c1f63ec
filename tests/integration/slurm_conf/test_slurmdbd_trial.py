"""Real slurmdbds of both releases try a slurmdbd.conf, by the script of the trial's own container."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.images.rootfs import ensure
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.trials.slurmdbd_pod import slurmdbd_trial
from slinky_operator.slurm.accounting.slurmdbd_conf import Storage, render
from slinky_operator.slurm.accounting.trial_conf import FOLDER, GIVEN, derive
from slinky_operator.slurm.pods.exit_messages import short
from tests.support.daemons import Daemons
from tests.support.slurm_host import SLURM_UID

CLUSTER = Cluster.parse(
    {
        "apiVersion": "slinky.slurm.net/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": "slurm", "namespace": "here", "uid": "uid"},
        "spec": {"accounting": {}},
    }
)
STORAGE = Storage("database.invalid", 3306, "acct", "me", "hush")
SAID = f"{FOLDER}/said"
"""Where the message goes instead of the kubelet's file."""


class Trial(Daemons):
    """A trial of a text of the user's, outside Kubernetes."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, "slurmdbd-trial-")
        self.place, self.given = self.folder / "trial", self.folder / "given"
        (self.folder / "etc" / "slurm").mkdir(exist_ok=True)
        for folder in (self.place, self.given, self.folder / "run", self.folder / "etc" / "slurm"):
            folder.mkdir(exist_ok=True)
            os.chown(folder, SLURM_UID, SLURM_UID)
        self.binds |= {FOLDER: self.place, GIVEN: self.given, "/run": self.folder / "run"}

    def of(self, extra: str) -> tuple[int, str]:
        """Exit code and message."""
        text = derive(render("slurm-accounting-0", STORAGE, extra))
        assert text is not None
        pod = slurmdbd_trial(CLUSTER, {"containers": [{"name": "slurmdbd", "image": "any"}]}, text).pod.body
        container = pod["spec"]["containers"][0]
        (self.given / "slurmdbd.conf").write_text(text)
        shell, flag, script = container["command"]
        self.spawn(
            "trial",
            [shell, flag, f"sleep 0.1\n{script.replace('/dev/termination-log', SAID)}"],
            userspec=f"{SLURM_UID}:{SLURM_UID}",
            environment={one["name"]: one["value"] for one in container["env"]},
        )
        code = self.daemons.pop("trial").process.wait(120)
        said = self.place / "said"
        return code, short(said.read_text()) if said.exists() else ""


@pytest.fixture(params=["24.11", "26.05"])
def trial(request: pytest.FixtureRequest) -> Iterator[Trial]:
    made = Trial(ensure(request.param))
    yield made
    made.close()


@pytest.mark.parametrize(
    "extra",
    [
        "",
        "PurgeJobAfter=24months\nPurgeStepAfter=2days\nPurgeEventAfter=12hours",
        "ArchiveJobs=yes\nArchiveDir=/tmp\nPurgeJobAfter=1month",
        "TrackWCKey=yes\nDebugLevel=debug\nDebugFlags=DB_QUERY\nPrivateData=jobs,usage\nCommitDelay=1",
        # Nobody may ask these hosts.
        "StorageBackupHost=database.invalid\nDbdBackupHost=slurmdbd.invalid",
    ],
)
def test_slurmdbd_accepts_it_without_a_database(trial: Trial, extra: str) -> None:
    assert trial.of(extra) == (0, "")


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ("Bogus=1", "Parsing error at unrecognized key: Bogus"),
        ("PurgeJobAfter=12parsecs", "Invalid purge unit 'parsecs', valid options are hours, days, or months"),
        ("ArchiveJobs=maybe", '"maybe" is not a valid option for "ArchiveJobs"'),
        ("ArchiveDir=/nosuch", "Failed to stat the archive directory /nosuch: No such file or directory"),
        ("DebugLevel=loud", "Invalid DebugLevel loud"),
        ("MessageTimeout=abc", 'MessageTimeout value "abc" is not a valid number'),
        ("HashPlugin=hash/bogus", "hash/bogus"),
    ],
)
def test_slurmdbd_refuses_it_and_says_why(trial: Trial, extra: str, words: str) -> None:
    code, said = trial.of(extra)
    assert code == 1
    assert words in said
