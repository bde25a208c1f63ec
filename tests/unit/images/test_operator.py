"""The operator's image has certificate authorities where OpenSSL is configured to find them."""

from __future__ import annotations

import re

from hack.packaging.render import ROOT

TEXT = (ROOT / "containers/operator/Dockerfile").read_text(encoding="utf-8")


def test_https_servers_are_verified_by_a_file_that_is_in_the_image() -> None:
    _, _, last = TEXT.rpartition("\nFROM ")
    (place,) = re.findall(r"\bSSL_CERT_FILE=(\S+)", last)
    (stage,) = re.findall(rf"(?m)^COPY --from=(\S+) \S+ {re.escape(place)}$", last)
    made = re.search(rf"(?ms)^FROM \S+ AS {stage}$(.*?)^FROM ", TEXT)
    assert made is not None
    assert re.search(r"apt-get install [^&]*\bca-certificates\b", made[1])
