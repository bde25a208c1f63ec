"""The API reference names every field, where a reader looks for it."""

from slinky_api.crd.__main__ import KINDS
from slinky_api.docs import api_reference

TEXT = api_reference(KINDS)


def test_every_object_type_has_its_table() -> None:
    for heading in ("Cluster `spec`", "Cluster `spec.partitions[]`", "NodeSet `spec.drain`", "NodeSet `status`"):
        assert f"\n### {heading}\n" in TEXT


def test_a_row_says_type_limits_default_and_whether_it_is_required() -> None:
    rows = TEXT.splitlines()
    assert any(row.startswith("| `clusterName` | text | ") and row.endswith("**Required.** |") for row in rows)
    assert "| `port` | integer | Port. Default: 3306. 1 to 65535. |" in rows
    assert any(row.startswith("| `maxUnavailable` | number or text | ") for row in rows)
    assert any(row.startswith("| `secretRef` | text or object | ") for row in rows)
    assert any(row.startswith("| `configFiles` | map of text | ") for row in rows)
    assert any(row.startswith("| `lastContact` | time | ") for row in rows)


def test_nothing_reads_as_html() -> None:
    assert "<claim>" not in TEXT
    assert "&lt;claim>" in TEXT


def test_rules_are_told() -> None:
    assert "- serviceName is immutable: it is part of every pod's host name" in TEXT
    assert "- only one of external, database and mariadb can be given" in TEXT
