"""The API reference names every field where a reader looks for it."""

from slinky_api.docs import api_reference
from slinky_api.v1alpha1 import KINDS

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


def test_the_same_is_said_of_many_fields_in_one_line() -> None:
    """Twenty lines of one rule hid the others."""
    rules = [line.removeprefix("- ") for line in TEXT.splitlines() if line.startswith("- ")]
    for block in TEXT.split("Rules:\n"):
        said = [line.partition(" ")[2] for line in block.split("\n|")[0].splitlines() if line.startswith("- ")]
        assert all(said.count(each) < 3 for each in said), said
    assert any(rule.startswith("each of `restapi`, `accounting`, ") for rule in rules)
    assert sum("it is only for a cluster that" in rule for rule in rules) == 2


def test_numbers_and_times_have_a_default_a_unit_and_an_example() -> None:
    rows = {line.split("`")[1]: line for line in TEXT.splitlines() if line.startswith("| `")}
    for field, words in {
        "weight": ("100", "Default: 1 (Slurm's own)"),
        "maxConcurrentStartup": ("50", "1000 unless changed"),
        "tokenLifetime": ("1h30m", "Default: 15m"),
        "gres": ("gpu:a100:4", "gres.conf", "inval"),
    }.items():
        assert all(word in rows[field] for word in words), rows[field]
    resources = next(line for line in TEXT.splitlines() if line.startswith("| `resources` ") and "CPUs=1" in line)
    assert "RealMemory=512" in resources
    assert "BestEffort" in resources
    drain = TEXT.split("### NodeSet `spec.drain`")[1].split("###")[0]
    assert "1h30m" in drain
    assert "Default: no limit" in drain.replace("\n", " ")
