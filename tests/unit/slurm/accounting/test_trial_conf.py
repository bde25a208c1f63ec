"""The slurmdbd.conf of a trial has the user's keys, and nothing of the real database."""

from __future__ import annotations

from slinky_operator.slurm.accounting.slurmdbd_conf import Storage, render
from slinky_operator.slurm.accounting.trial_conf import derive

STORAGE = Storage("db.there", 3307, "acct", "me", "hush")
EXTRA = "PurgeJobAfter=12months\nArchiveDir=/archive/jobs\nStorageBackupHost=db.elsewhere\nDbdBackupHost=other\n"


def lines(text: str | None) -> set[str]:
    assert text is not None
    return set(text.splitlines())


def test_it_has_the_keys_of_the_user_and_no_database() -> None:
    made = derive(render("slurm-accounting-0", STORAGE, EXTRA))
    assert {"PurgeJobAfter=12months", "ArchiveDir=/archive/jobs", "StorageHost=127.0.0.1"} <= lines(made)
    assert {"AuthAltParameters=jwt_key=/trial/jwt.key", "DbdHost=localhost"} <= lines(made)
    for real in ("db.there", "3307", "hush", "db.elsewhere", "other", "StoragePass"):
        assert real not in str(made)


def test_another_database_is_the_same_trial() -> None:
    other = Storage("db.here", 3306, "slurm", "you", "")
    assert derive(render("a", STORAGE, EXTRA)) == derive(render("b", other, EXTRA))
    assert derive(render("a", STORAGE, EXTRA)) != derive(render("a", STORAGE))


def test_an_archive_on_a_claim_is_not_looked_for() -> None:
    text = render("a", STORAGE, EXTRA + "ArchiveScript=/archive/run.sh")
    assert not {"ArchiveDir=/archive/jobs", "ArchiveScript=/archive/run.sh"} & lines(derive(text, {"/archive"}))
    assert "ArchiveDir=/archive/jobs" in lines(derive(text, {"/arch", "/archive/jobs/deeper"}))


def test_a_file_of_somebody_else_is_no_trial() -> None:
    assert derive("Include /etc/passwd") is None
