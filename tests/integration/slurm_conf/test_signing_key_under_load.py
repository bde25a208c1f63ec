"""What the rotation of a signing key costs, on real daemons with accounting, under submissions and two slurmrestds.

The key is replaced in the operator's order. docs/development/reliability-journal.md has what is printed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from hack.images.rootfs import ensure, ensure_mariadb
from hack.machine import ports
from hack.machine.progress import say
from slinky_operator.slurm.tokens import key_set as token_keys
from slinky_operator.slurm.tokens.signing_keys import SigningKey
from tests.integration.slurm_conf import test_jwt_rotation as jwt_rotation
from tests.integration.slurm_conf.test_key_orders import SLURMDBD, all_ended_well
from tests.integration.slurm_conf.test_token_keys import A, B, name_set, of, put, token, until
from tests.support.accounting_host import AccountingHost
from tests.support.mariadb_host import MariadbHost
from tests.support.slurm_host import SLURM_UID
from tests.support.slurm_series import OLDER_IN_FULL

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(params=OLDER_IN_FULL)
def slurm(request: pytest.FixtureRequest) -> Iterator[AccountingHost]:
    with MariadbHost(ensure_mariadb()) as mariadb:
        host = AccountingHost(ensure(request.param), database=mariadb.database("load"))
        try:
            yield host
        finally:
            host.close()


def test_a_signing_key_is_replaced_with_accounting_and_no_call_to_slurmctld_fails(slurm: AccountingHost) -> None:
    for file in ("slurm.conf", "slurmdbd.conf"):
        name_set(slurm, file)

    def give(*keys: SigningKey) -> None:
        put(slurm, of(*keys))
        # As a Secret is mounted for slurmdbd.
        os.chown(slurm.configuration / token_keys.FILE, 0, SLURM_UID)
        (slurm.configuration / token_keys.FILE).chmod(0o440)

    def restart_slurmdbd() -> None:
        slurm.stop(SLURMDBD)
        slurm.start_slurmdbd()

    give(A)
    slurm.start()
    slurm.add_node("w-0", cpus=16, memory=4096)
    (second,) = ports.hold(1)
    slurm.start_slurmrestd("slurmrestd-2", second)
    load = jwt_rotation.Load(slurm, (slurm.rest_port, second), A, token)
    try:
        load.goes_on()
        began = time.monotonic()
        give(A, B)
        until(slurm, B, taken=True)
        restart_slurmdbd()
        load.key, switched = B, time.monotonic()
        load.goes_on()
        give(B)
        until(slurm, A, taken=False)
        restart_slurmdbd()
        ended = time.monotonic()
        load.goes_on()
    finally:
        load.end()
    failed = [one for one in load.calls if one.status != 200]
    assert {one.path for one in failed} <= {*jwt_rotation.OF_SLURMDBD}
    assert not [one for one in failed if one.began > ended]
    all_ended_well(slurm, load.jobs)
    say(
        f"signing key: tokens {switched - began:.1f} s, all {ended - began:.1f} s; {len(failed)} of {len(load.calls)} "
        f"calls failed, {len(load.jobs)} jobs, 0 lost"
    )
