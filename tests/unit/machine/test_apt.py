"""While Debian packages are installed their services are not started, and afterwards the machine is as it was."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from hack.machine import apt
from hack.machine.apt import no_services


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    return tmp_path / "policy-rc.d"


def test_services_are_refused_as_long_as_it_lasts(policy: Path, tmp_path: Path) -> None:
    with no_services(policy, tmp_path):
        assert stat.S_IMODE(policy.stat().st_mode) == 0o755
        assert policy.read_text().endswith("exit 101\n")
    assert list(tmp_path.iterdir()) == []


def test_a_policy_of_the_machine_is_left_alone(policy: Path, tmp_path: Path) -> None:
    policy.write_text("#!/bin/sh\nexit 101\n")
    with no_services(policy, tmp_path):
        assert policy.read_text() == "#!/bin/sh\nexit 101\n"
    assert policy.read_text() == "#!/bin/sh\nexit 101\n"


def test_what_a_killed_run_left_goes_with_the_next(policy: Path, tmp_path: Path) -> None:
    with no_services(policy, tmp_path):
        left = policy.read_text()
    policy.write_text(left)
    with no_services(policy, tmp_path):
        assert policy.exists()
    assert not policy.exists()


def test_who_ends_first_does_not_take_it_from_the_other(policy: Path, tmp_path: Path) -> None:
    seen: list[bool] = []

    def another() -> None:
        with no_services(policy, tmp_path):
            seen.append(policy.exists())

    thread = threading.Thread(target=another)
    with no_services(policy, tmp_path):
        thread.start()
        assert not seen
    thread.join()
    assert seen == [True]
    assert not policy.exists()


def test_the_words_of_apt_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("apt-get", "dpkg"):
        fake = tmp_path / name
        fake.write_text('#!/bin/sh\necho "asked ${0##*/} for $*"\necho "E: no room"\nexit 100\n')
        fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(apt, "POLICY", tmp_path / "policy-rc.d")
    monkeypatch.setattr(apt, "DPKG", tmp_path)
    with pytest.raises(
        apt.AptFailed, match=r"(?s)asked apt-get for .* update.*asked apt-get for .* install .* runc.*E: no room"
    ):
        apt.install(["runc"], lambda _: None)


def test_what_a_killed_installation_had_begun_is_finished_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = tmp_path / "begun"
    begun.touch()
    scripts = {
        "dpkg": f'[ "$*" = "--configure --pending" ] && rm {begun}',
        "apt-get": f'[ ! -e {begun} ] || {{ echo "E: dpkg was interrupted"; exit 100; }}',
    }
    for name, script in scripts.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(apt, "POLICY", tmp_path / "policy-rc.d")
    monkeypatch.setattr(apt, "DPKG", tmp_path)
    apt.install(["runc"], lambda _: None)
    assert not begun.exists()


def test_a_machine_without_apt_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(apt.AptFailed, match="no apt-get"):
        apt.install(["runc"], lambda _: None)
