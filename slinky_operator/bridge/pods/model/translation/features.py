"""Which nodes a pod may have, as features that Slurm looks for: nodeSelector and required node affinity. Pure.

Slurm chooses the Node, and the scheduler of Kubernetes then refuses one that does not fit: such a pod would wait for
ever, with a Node that is kept for it. So what Slurm cannot be told is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from slinky_api.v1alpha1.cluster.jobs import Bridge
from slinky_operator.bridge.features import feature_of
from slinky_operator.bridge.pods.model.translation.job_annotations import FIELDS
from slinky_operator.jobs.refusal import InvalidJob
from slinky_operator.kube.objects import Object

_ALWAYS: Final[Mapping[str, str]] = {"kubernetes.io/os": "linux"}
"""Labels that every Node of a bridge has."""

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_AFFINITY: Final = f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"

MOST_VALUES: Final = 32
"""Values of a label of which a Node may have any."""


def features(pod: Object, bridge: Bridge, annotated: str | None) -> str:
    """Features that nodes must have: that of the bridge, and what the pod and an annotation ask for.

    Raises
    ------
    InvalidJob
        With the path of the field, for what is no feature.
    """
    words = [bridge.name, *_selected(pod, bridge), *_required(pod, bridge)]
    if not annotated:
        return "&".join(words)
    if any(sign in annotated for sign in "[]{}*"):
        reason = "cannot be joined with the feature that nodes of the bridge have: leave brackets and counts out"
        raise InvalidJob(FIELDS.path("features"), reason)
    if not _is_closed(annotated):
        # a)|(b would be joined to (bridge&a)|(b), and leave the nodes of the bridge.
        raise InvalidJob(FIELDS.path("features"), "has a parenthesis without its counterpart")
    return "&".join([*words, f"({annotated})" if "|" in annotated else annotated])


def _is_closed(text: str) -> bool:
    """Whether each parenthesis that closes has been opened before, and the other way round."""
    depth = 0
    for sign in text:
        depth += (sign == "(") - (sign == ")")
        if depth < 0:
            return False
    return depth == 0


def _selected(pod: Object, bridge: Bridge) -> Iterator[str]:
    for label, value in sorted((pod["spec"].get("nodeSelector") or {}).items()):
        if {**_ALWAYS, **bridge.node_labels}.get(label) != value:
            yield _feature(label, value, bridge, f"spec.nodeSelector[{label[:100]}]")


def _required(pod: Object, bridge: Bridge) -> list[str]:
    """What required node affinity asks for: all words of one term, or the one of any term."""
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    terms = (affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ()
    ways = [list(_term(term, bridge, f"{_AFFINITY}[{number}]")) for number, term in enumerate(terms)]
    if not all(ways):
        # One of them asks for what every Node of the bridge has.
        return []
    if len(ways) <= 1:
        return [_any(words) for way in ways for words in way]
    if any(len(way) > 1 for way in ways):
        reason = "Slurm can be told one term with several expressions, or several terms with one: leave some out"
        raise InvalidJob(_AFFINITY, reason)
    return [_any([word for way in ways for word in way[0]])]


def _term(term: Mapping[str, Any], bridge: Bridge, path: str) -> Iterator[list[str]]:
    """For each expression, the words of which a node must have one."""
    if term.get("matchFields"):
        raise InvalidJob(f"{path}.matchFields", "Slurm chooses the Node: leave it out")
    expressions = term.get("matchExpressions") or ()
    if not expressions:
        raise InvalidJob(path, "is empty, which no Node fits: leave it out")
    for number, one in enumerate(expressions):
        words = _expression(one, bridge, f"{path}.matchExpressions[{number}]")
        if words:
            yield words


def _expression(one: Mapping[str, Any], bridge: Bridge, path: str) -> list[str]:
    """Words of which a node must have one; none if every node of the bridge fits."""
    label, operator, values = str(one.get("key")), str(one.get("operator")), one.get("values") or ()
    always = {**_ALWAYS, **bridge.node_labels}.get(label)
    if always is not None and (operator == "Exists" or (operator == "In" and always in values)):
        return []
    if operator != "In":
        raise InvalidJob(f"{path}.operator", f"must be In, not {operator[:20]}: Slurm can be told nothing else")
    if len(values) > MOST_VALUES:
        raise InvalidJob(f"{path}.values", f"must be {MOST_VALUES} at most, not {len(values)}")
    return [_feature(label, str(value), bridge, f"{path}.values") for value in values]


def _any(words: list[str]) -> str:
    return f"({'|'.join(words)})" if len(words) > 1 else words[0]


def _feature(label: str, value: str, bridge: Bridge, path: str) -> str:
    if label not in bridge.feature_labels:
        reason = f"Slurm does not know the label {label[:100]}: the administrator of the Cluster can add it in"
        raise InvalidJob(path, f"{reason} spec.jobs.bridge.featureLabels")
    word = feature_of(label, value)
    if word is None:
        raise InvalidJob(path, f"{value[:100]!r} is no feature of Slurm, so no node has it")
    return word
