"""Five minutes of calls with a Token whose tokens live for 60 s: how many, with how many tokens, and which failed.

Prints, asserts nothing. The program reads the Secret before each call, as a program reads a mounted file, and never
tries a call again; `tests/e2e/operator/test_tokens.py` shows renewals and replaced keys.
"""

from __future__ import annotations

import time
from itertools import pairwise

import pytest

from hack.installing.operator import Installation
from hack.localkube.kubectl import wait_for
from tests.support.port_forward import port_forward
from tests.support.slurm_in_kubernetes import SlurmInKubernetes, fresh_namespace
from tests.support.token_programs import Program, token, wait_reason

pytestmark = pytest.mark.timeout(1800)

SECONDS = 300.0
LIFETIME = "60s"
USER = "daemon"
"""Somebody who is known in every image."""


def test_tokens_of_a_minute(installed: Installation) -> None:
    slurm = SlurmInKubernetes(installed.cluster.kubectl, fresh_namespace("bench"), "26.05")
    slurm.create(auth={"tokens": [{"usernames": [USER]}]})
    slurm.wait_ready()
    slurm.kubectl.apply([token(slurm, "portal", slurm.namespace, username=USER, lifetime=LIFETIME)])
    wait_reason(slurm.kubectl, slurm.namespace, "portal", "AsExpected")
    with (
        port_forward(slurm.kubectl, slurm.namespace, f"service/{slurm.name}-restapi", 6820) as port,
        Program(slurm, "portal", f"http://127.0.0.1:{port}") as program,
    ):
        end = time.monotonic() + SECONDS
        wait_for("the end of the program", lambda: program.error is not None or time.monotonic() >= end, SECONDS * 2)
        tokens = program.tokens
    ended = [when for _, _, _, when in program.answers]
    failed = [(status, wrong) for _, status, wrong, _ in program.answers if status != 200]
    longest = max((after - before for before, after in pairwise(ended)), default=0.0)
    print(f"\ncalls                {len(ended):8}")
    print(f"seconds              {ended[-1] - ended[0]:8.1f}")
    print(f"tokens used          {tokens:8}")
    print(f"longest gap, seconds {longest:8.2f}")
    print(f"failed               {len(failed):8}")
    for status, wrong in failed[:10]:
        print(f"    {status}: {wrong}")
