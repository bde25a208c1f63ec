"""Texts, names, numbers: the model and the rule in the CRD reject the same."""

import re
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from slinky_api.v1alpha1 import fields, rules

ONE_LINE = [fields.OneLine, fields.PartitionLine, fields.NodeLine]
NAMES = [
    fields.DnsLabel,
    fields.ShortName,
    fields.Namespace,
    fields.DnsSubdomain,
    fields.HostName,
    fields.UrlOrEmpty,
    fields.Image,
    fields.UserName,
    fields.SlurmName,
    fields.PartitionName,
    fields.SlurmNodeSetName,
    fields.NodeExpression,
    fields.FeatureName,
    fields.GresText,
]
BREAKS = "\n\r\v\f\x00\x1c\x1d\x1e\x85\u2028\u2029"
TEXT = st.text(st.characters(codec="utf-8"), max_size=40) | st.text("Nodes=aA1 -_.,:/\"'#\\\t" + BREAKS)


ADAPTERS: dict[int, tuple[TypeAdapter[Any], dict[str, Any]]] = {}


def described(annotation: Any) -> tuple[TypeAdapter[Any], dict[str, Any]]:
    """Adapter and schema of a type; building them takes longer than all else here."""
    if id(annotation) not in ADAPTERS:
        adapter = TypeAdapter[Any](annotation)
        ADAPTERS[id(annotation)] = adapter, adapter.json_schema()
    return ADAPTERS[id(annotation)]


def accepts(annotation: Any, value: object) -> bool:
    try:
        described(annotation)[0].validate_python(value)
    except ValidationError:
        return False
    return True


def crd_accepts(annotation: Any, text: str) -> bool:
    """What the API server would say, for the few forms of rules that we use."""
    schema = described(annotation)[1]
    if not schema.get("minLength", 0) <= len(text) <= schema["maxLength"]:
        return False
    if "pattern" in schema and not matches(schema["pattern"], text):
        return False
    return all(rule_holds(rule["rule"], text) for rule in schema.get("x-kubernetes-validations", ()))


def rule_holds(rule: str, text: str) -> bool:
    if found := re.fullmatch(r"(!?)self\.matches\('((?:[^'\\]|\\.)*)'\)", rule):
        pattern = re.sub(r"\\(.)", r"\1", found[2])
        return matches(pattern, text) != bool(found[1])
    assert rule == "!(self.lowerAscii() in ['default', 'all'])"
    return text.lower() not in {"default", "all"}


def matches(pattern: str, text: str) -> bool:
    """RE2 in Python's words: code points are written differently, and ``$`` is the end, not a last line break."""
    translated = re.sub(r"\\x\{([0-9a-f]+)\}", lambda code: f"\\u{int(code[1], 16):04x}", pattern)
    return re.search(translated.replace("$", r"\Z"), text, re.ASCII) is not None


@pytest.mark.parametrize("annotation", [*ONE_LINE, *NAMES])
@given(before=TEXT, broken=st.sampled_from(BREAKS), after=TEXT)
@example(before="MaxTime=1", broken="\n", after="")
def test_no_text_with_a_line_break_gets_in(annotation: Any, before: str, broken: str, after: str) -> None:
    assert not accepts(annotation, before + broken + after)
    assert not crd_accepts(annotation, before + broken + after)


@pytest.mark.parametrize("annotation", ONE_LINE)
@given(text=TEXT)
def test_what_gets_in_is_one_line_to_everybody(annotation: Any, text: str) -> None:
    assume(accepts(annotation, text))
    assert len(f"{text}.".splitlines()) == 1
    assert not text.rstrip().endswith("\\")


@pytest.mark.parametrize("annotation", [*ONE_LINE, *NAMES, fields.ConfText])
@given(text=TEXT)
@example(text="a\\")
@example(text="a\\ \t")
@example(text="a\\\n")
@example(text="nodes =x")
@example(text="a\u00a0Nodes=x")
@example(text='"Nodes"=x')
@example(text="Default=YES PartitionName+=x")
@example(text="DEFAULT")
@example(text="compute")
@example(text="http://a:1/b")
def test_model_and_rule_agree(annotation: Any, text: str) -> None:
    assert accepts(annotation, text) == crd_accepts(annotation, text)


@pytest.mark.parametrize(
    ("annotation", "good", "bad"),
    [
        (fields.PartitionLine, ["", "Default=YES MaxTime=1:00:00", "MaxNodes=4"], ["Nodes=a", "x PARTITIONNAME = b"]),
        (fields.NodeLine, ["MemSpecLimit=1024", "CoreSpecCount=1"], ["NodeName=a"]),
        (fields.ConfText, ["", "A=1\nB=2\n", "# why\nA=1"], ["A=1\r\n", "A=1\\", "A=1\\\n", "\x00"]),
        (fields.PartitionName, ["debug", "a_b", "GPU", "defaults"], ["default", "Default", "ALL", "a b", "a,b", ""]),
        (fields.SlurmNodeSetName, ["ALL", "a-b"], ["all nodes", "a.b", "A"]),
        (fields.FeatureName, ["gpu", "k8s/zone=a", "4x"], ["a,b", "a b", "a&b", "", 'a"', "[a]", "-a"]),
        (fields.GresText, ["gpu:1", "gpu:a100:4(S:0-1),shard:8"], ["gpu:1 Features=x", "a=b", '"a"', ""]),
        (fields.NodeExpression, ["n1", "n[01-16,18]", "a,b"], ["n 1", "n{1}", ""]),
        (fields.UrlOrEmpty, ["http://a", "https://a.b:6820/x/", "http://[::1]:6820"], ["a:6820", "http://", "ftp://a", "http://u@a"]),
        (fields.UrlOrEmpty, ["http://a:65535"], ["http://[::1", "http://a:65536", "http://a:0", "http://a:b:1", "http://a:"]),
        (fields.DnsLabel, ["a", "a-1", "1a", "a" * 63], ["A", "a.b", "-a", "a-", "", "a" * 64]),
        (fields.DnsSubdomain, ["a.b", "a"], ["a..b", ".a", "a."]),
        (fields.Image, ["a", "registry.example.com:5000/a/b:1@sha256:00"], ["a b", "", "-a"]),
        (fields.HostName, ["a.b", "10.0.0.1", "fe80::1"], ["a b", "a/b"]),
        (fields.IntOrPercent, [0, 1, "0%", "25%", "100%"], [-1, "101%", "2", "-1%", "a", 1.5, True, "1%\n"]),
        (fields.Duration, ["10s", "1h30m", "0s", "1.5m", "100ms"], ["10", "", "-1s", "1d", "1 h", "s", "1s\n"]),
        (fields.Duration, ["87600h", "5256000m"], ["87601h", "999999999h", "999999999m"]),
        (fields.FileTexts, [{"gres.conf": "a\nb"}, {}], [{"a/b": ""}, {"": ""}, {".x": ""}, {"..": ""}]),
    ],
)  # fmt: skip
def test_examples(annotation: Any, good: list[object], bad: list[object]) -> None:
    assert [value for value in good if not accepts(annotation, value)] == []
    assert [value for value in bad if accepts(annotation, value)] == []


@given(hours=st.integers(0, 999), minutes=st.integers(0, 59), seconds=st.integers(0, 59))
def test_durations_are_read_and_written(hours: int, minutes: int, seconds: int) -> None:
    read = TypeAdapter(fields.Duration).validate_python(f"{hours}h{minutes}m{seconds}s")
    assert read == timedelta(hours=hours, minutes=minutes, seconds=seconds)
    assert (
        TypeAdapter(fields.Duration).validate_python(TypeAdapter(fields.Duration).dump_python(read, mode="json"))
        == read
    )


@given(st.text())
def test_a_cel_literal_holds_any_text_without_line_breaks(text: str) -> None:
    literal = rules.cel_string(text)
    assert re.fullmatch(r"'((?:[^'\\]|\\.)*)'", literal, re.DOTALL)
    assert re.sub(r"\\(.)", r"\1", literal[1:-1], flags=re.DOTALL) == text
