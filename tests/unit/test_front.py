"""What kopf is given to log in with."""

from __future__ import annotations

import ssl

from slinky_operator.front import Credentials


def test_a_cluster_ca_need_not_have_the_extensions_that_strict_checks_demand() -> None:
    context = Credentials(server="https://api").as_ssl_context()
    assert not context.verify_flags & ssl.VERIFY_X509_STRICT
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
