"""What is kept of a job's files: what Slurm says of them, and no text without a bound."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from slinky_api.v1alpha1.slurmjob.files import JobFilesStatus
from slinky_api.v1alpha1.slurmjob.kind import SlurmJob, SlurmJobStatus
from slinky_operator.slurmjob.model.job_files import LONGEST, kept
from slurm_client.models import Job

JOB = SlurmJob.parse(
    {
        "metadata": {"name": "a", "namespace": "b", "uid": "u"},
        "spec": {
            "clusterName": "c",
            "script": "#!/bin/sh\n",
            "results": [{"volume": {"persistentVolumeClaim": {"claimName": "a"}}}],
        },
    }
)


def of(known: JobFilesStatus | None = None, **values: Any) -> JobFilesStatus | None:
    record = Job(
        id=1, nodes=("a-0",), batch_host="a-0", working_directory="/w", standard_output_expanded="/w/out", user_id=7
    )
    return kept(JOB, SlurmJobStatus(files=known), [replace(record, **values)]).files


def test_a_node_that_slurm_no_longer_names_stays_known_and_one_that_is_too_long_is_none() -> None:
    known = JobFilesStatus(node="old-0")
    unnamed, too_long = of(known, batch_host="", nodes=()), of(known, batch_host="x" * (LONGEST + 1))
    assert unnamed is not None
    assert too_long is not None
    assert (unnamed.node, too_long.node) == ("old-0", "")


def test_node_folder_output_and_user_are_kept() -> None:
    assert of() == JobFilesStatus(uid=7, node="a-0", folder="/w", output="/w/out")


@pytest.mark.parametrize(
    ("field", "shown"),
    [("batch_host", "node"), ("working_directory", "folder"), ("standard_output_expanded", "output")],
)
def test_a_text_that_is_too_long_is_not_kept(field: str, shown: str) -> None:
    whole, left_out = of(None, **{field: "x" * LONGEST}), of(None, **{field: "x" * (LONGEST + 1)})
    assert whole is not None
    assert left_out is not None
    assert len(getattr(whole, shown)) == LONGEST
    assert getattr(left_out, shown) == ""
