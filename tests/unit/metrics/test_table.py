"""The page about the operator's metrics lists all of them."""

from __future__ import annotations

from hack.documents.tables.operator_metrics import PAGE, rows, with_table


def test_the_page_is_up_to_date() -> None:
    page = PAGE.read_text()
    assert page == with_table(page), "python -m hack.documents.tables.operator_metrics"


def test_names_and_descriptions_are_complete() -> None:
    found = {name: what for name, _, _, what in rows()}
    assert all(name.startswith("slurm_operator_") for name in found)
    assert all(what.endswith(".") for what in found.values())
    # Every query of the page names metrics that there are.
    for line in PAGE.read_text().split("## All metrics")[0].splitlines():
        for word in line.replace("`", " ").replace("(", " ").replace("{", " ").replace("[", " ").split():
            if word.startswith("slurm_operator_"):
                name = word.strip(",;:).").removesuffix("_sum").removesuffix("_bucket")
                assert name in found, name
