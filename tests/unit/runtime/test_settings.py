"""Flags override the environment, and invalid values are rejected by name."""

from __future__ import annotations

import pytest

from slinky_operator.settings import Settings, SettingsError


def test_defaults_need_nothing() -> None:
    settings = Settings.load([], {})
    assert settings.namespaces == ()
    assert settings.leader_election
    assert settings.identity != Settings.load([], {}).identity


def test_flags_win_over_the_environment() -> None:
    settings = Settings.load(
        ["--namespaces", "a, b,a", "--no-leader-election"],
        {"SLURM_OPERATOR_NAMESPACES": "c", "SLURM_OPERATOR_HEALTH_PORT": "9000", "SLURM_OPERATOR_LOG_LEVEL": "debug"},
    )
    assert settings.namespaces == ("a", "b")
    assert not settings.leader_election
    assert settings.health_port == 9000
    assert settings.log_level == "DEBUG"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--health-port", "http"], "--health-port"),
        (["--log-format", "xml"], "--log-format"),
        (["--image-slurmd", ""], "--image-slurmd: .*at least 1 character"),
        (["--nodeset-workers", "0"], "--nodeset-workers"),
        (["--lease-duration", "5"], "lease_renew_deadline"),
        (["--node-poll-interval", "60"], "node_poll_interval"),
        (["--node-labels-from-slurm"], "node_labels_from_slurm needs node_labels_config_map"),
        (
            ["--node-labels-from-slurm", "--node-labels-config-map=a/b"],
            "node_labels_from_slurm and node_labels_clusters need each other",
        ),
        (["--sylabs-clusters=a/b"], "sylabs_clusters needs sylabs_jobs"),
        (["--sylabs-clusters=a"], "--sylabs-clusters"),
        (["--node-labels-config-map", "slurm-config"], "--node-labels-config-map"),
        (["--node-labels-config-map", "a/b", "--namespaces", "a"], "node_labels_config_map needs watch_nodes"),
        (["--node-labels-config-map", "a/b", "--no-watch-nodes"], "node_labels_config_map needs watch_nodes"),
        (
            ["--drain-requests-namespace", "a", "--namespaces", "a"],
            "drain_requests_namespace needs watch_nodes, and all",
        ),
        (["--slurmrestd-override=slurm=http://127.0.0.1:6820"], "--slurmrestd-override"),
        (["--slurmrestd-override=a/b=http://slurm.example.com:6820"], "--slurmrestd-override"),
        (["--slurmrestd-override=a/b=http://127.0.0.1.example.com:6820"], "--slurmrestd-override"),
        (["--slurmrestd-override=a/b=http://localhost:1,a/b=http://localhost:2"], "names a Cluster twice"),
    ],
)
def test_nonsense_is_refused_by_name(arguments: list[str], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        Settings.load(arguments, {})


def test_an_override_is_for_a_port_of_a_machine_outside_kubernetes() -> None:
    given = ["--slurmrestd-override=a/b=http://127.0.0.1:6820,c/d.e=http://[::1]:6821"]
    expected = {("a", "b"): "http://127.0.0.1:6820", ("c", "d.e"): "http://[::1]:6821"}
    assert Settings.load(given, {}).slurmrestd_overrides == expected
    with pytest.raises(SettingsError, match="inside Kubernetes"):
        Settings.load(given, {"KUBERNETES_SERVICE_HOST": "10.96.0.1"})


def test_each_default_image_is_an_option() -> None:
    settings = Settings.load(["--image-slurmd=theirs:1"], {"SLURM_OPERATOR_IMAGE_LOGIN": "ours:1"})
    assert (settings.images["slurmd"], settings.images["login"]) == ("theirs:1", "ours:1")
    assert (settings.images["slurmctld"], settings.images["mariadb"]) == (
        "slinky/slurmctld:26.05",
        "slinky/mariadb:11.8",
    )
    assert Settings().images == Settings.load([], {}).images


def test_every_setting_is_documented() -> None:
    assert all(field.description for field in Settings.model_fields.values())
    assert "SLURM_OPERATOR_" in Settings.parser().format_help()
