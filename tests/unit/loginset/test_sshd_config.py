"""sshd takes the first value it finds: ours, then the user's, then defaults, then the user's Match blocks."""

from __future__ import annotations

from slinky_operator.loginset.bodies.sshd_config import compose, explained

KEYS = ("ssh_host_ed25519_key",)


def test_the_users_lines_come_before_defaults_and_match_blocks_last() -> None:
    extra = "PasswordAuthentication yes\nmatch User alice\n  X11Forwarding yes"
    lines = compose(extra, host_keys=KEYS, root=False).text.splitlines()
    assert lines.index("PasswordAuthentication yes") < lines.index("PasswordAuthentication no")
    assert lines[-2:] == ["match User alice", "  X11Forwarding yes"]
    assert lines.index("Port 2222") < lines.index("PasswordAuthentication yes")


def test_root_is_let_in_only_with_keys() -> None:
    assert "PermitRootLogin no" in compose("", host_keys=KEYS, root=False).text
    assert "PermitRootLogin prohibit-password" in compose("", host_keys=KEYS, root=True).text


def test_sssd_is_asked_for_keys_unless_the_user_names_another_command() -> None:
    assert "AuthorizedKeysCommand" not in compose("", host_keys=KEYS, root=False).text
    lines = compose("AuthorizedKeysCommand none", host_keys=KEYS, root=False, sssd=True).text.splitlines()
    asks = [one for one in lines if one.startswith("AuthorizedKeysCommand")]
    program = "/usr/bin/sss_ssh_authorizedkeys %u"
    # sshd takes the first; it needs a user with any command.
    wanted = ["none", program]
    assert asks == [*(f"AuthorizedKeysCommand {one}" for one in wanted), "AuthorizedKeysCommandUser nobody"]


def test_sftp_is_defined_once() -> None:
    assert compose("subsystem sftp /bin/other", host_keys=KEYS, root=False).text.lower().count("subsystem") == 1
    assert compose("", host_keys=KEYS, root=False).text.count("Subsystem sftp internal-sftp") == 1


def test_each_line_of_the_user_is_found_again() -> None:
    extra = "A 1\n\n# Match nothing\nB 2\nMatch all\n  C 3\n"
    config, users = compose(extra, host_keys=KEYS, root=True), extra.splitlines()
    lines = config.text.splitlines()
    assert sorted(config.lines.values()) == list(range(1, len(users) + 1))
    assert all(lines[here - 1] == users[there - 1] for here, there in config.lines.items())


def test_sshds_words_name_the_users_line() -> None:
    extra = "Foo 1\nPort x\n"
    config = compose(extra, host_keys=KEYS, root=False)
    first, second = sorted(config.lines)
    words = (
        f"/etc/slurm-login/config/sshd_config: line {first}: Bad configuration option: Foo\n"
        f"/etc/slurm-login/config/sshd_config line {second}: Badly formatted port number.\n"
        "/etc/slurm-login/config/sshd_config: terminating, 1 bad configuration options\n"
    )
    assert explained(words, config, extra) == (
        "line 1 (Foo 1): Bad configuration option: Foo; line 2 (Port x): Badly formatted port number."
    )


def test_other_words_are_kept_and_bounded() -> None:
    config = compose("", host_keys=KEYS, root=False)
    assert explained("sh: 1: /usr/sbin/sshd: not found", config, "") == "sh: 1: /usr/sbin/sshd: not found"
    assert len(explained("x" * 100_000, config, "")) <= 1000
