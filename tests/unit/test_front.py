"""The settings of kopf: credentials, and patience."""

from __future__ import annotations

import ssl
from collections.abc import Sized
from itertools import islice

from slinky_operator.front import LONGEST_PAUSE, Credentials, settings


def test_a_cluster_ca_need_not_have_the_extensions_that_strict_checks_demand() -> None:
    context = Credentials(server="https://api").as_ssl_context()
    assert not context.verify_flags & ssl.VERIFY_X509_STRICT
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname


def test_kopf_never_gives_up_on_an_api_server() -> None:
    backoffs = settings().networking.error_backoffs
    assert not isinstance(backoffs, float | int | Sized)
    for _ in range(2):
        pauses = list(islice(backoffs, 1000))
        assert len(pauses) == 1000
        assert 0 < pauses[0] <= 1
        assert all(0 < pause <= LONGEST_PAUSE for pause in pauses)
