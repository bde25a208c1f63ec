"""What is asked of the output of a container, as the API server passes it on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from http import HTTPStatus

import pytest

from slinky_operator.virtual_nodes.kubelet.log_request import LogRequest, leaves_out_all, parse
from slinky_operator.virtual_nodes.kubelet.refusal import NotServed

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def asked(**query: str) -> LogRequest:
    return parse(query, "main", "p", NOW)


def test_what_kubectl_sends_is_understood() -> None:
    assert asked() == LogRequest()
    assert asked(follow="true", tailLines="7", limitBytes="9") == LogRequest(follow=True, tail_lines=7, limit_bytes=9)
    assert asked(sinceSeconds="3600").since == NOW - HOUR
    assert asked(sinceTime="2026-11-27T11:00:00Z").since == NOW - HOUR
    assert asked(stream="All", previous="false", timestamps="0") == LogRequest()


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"previous": "true"}, 'previous terminated container "main" in pod "p" not found'),
        ({"timestamps": "true"}, "no time of each line"),
        ({"stream": "Stderr"}, "one file"),
        ({"tailLines": "-1"}, "tailLines"),
        ({"tailLines": "9" * 30}, "tailLines"),
        ({"limitBytes": "0"}, "limitBytes"),
        ({"limitBytes": "²"}, "limitBytes"),
        ({"sinceSeconds": "0"}, "sinceSeconds"),
        ({"sinceTime": "yesterday"}, "sinceTime is no time"),
        ({"sinceTime": "2026-11-27T11:00:00"}, "sinceTime is no time"),
        ({"sinceSeconds": "1", "sinceTime": "2026-11-27T11:00:00Z"}, "exclude each other"),
        ({"follow": "maybe"}, "follow is neither true nor false"),
        ({"colour": "true"}, "colour is no parameter"),
    ],
)
def test_what_is_not_true_of_slurms_output_is_refused_in_a_sentence(query: dict[str, str], words: str) -> None:
    with pytest.raises(NotServed, match=words) as refused:
        asked(**query)
    assert refused.value.status is HTTPStatus.BAD_REQUEST
    assert "\n" not in refused.value.why
    assert len(refused.value.why) < 300


def test_a_time_is_served_where_it_leaves_out_nothing_or_everything() -> None:
    assert not leaves_out_all(None, None, None)
    assert not leaves_out_all(NOW - HOUR, NOW, None)
    assert not leaves_out_all(NOW, NOW, NOW + HOUR)
    assert leaves_out_all(NOW, NOW - 2 * HOUR, NOW - HOUR)
    for since, started, ended in ((NOW, NOW - HOUR, None), (NOW, NOW - HOUR, NOW + HOUR), (NOW, None, None)):
        with pytest.raises(NotServed, match="--tail its last lines"):
            leaves_out_all(since, started, ended)


def test_any_number_of_seconds_is_a_time() -> None:
    assert asked(sinceSeconds=str(2**62)).since is not None
