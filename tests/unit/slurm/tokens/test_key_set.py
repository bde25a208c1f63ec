"""What users give as public keys, and what the daemons get of it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.slurm.conf.sources.gather import TextSource, names_of_sources
from slinky_operator.slurm.conf.sources.token_keys import gather
from slinky_operator.slurm.tokens import key_set, signing_keys
from slinky_operator.slurm.tokens.key_set import UnusableKeySet
from tests.support.rsa_keys import rsa_key


def jwk(name: str, **more: Any) -> dict[str, Any]:
    public = signing_keys.public_of(rsa_key(name))
    return {"kty": "RSA", "kid": name, "n": public.n, "e": public.e, **more}


def text(*keys: Any) -> str:
    return json.dumps({"keys": keys})


def test_what_the_daemons_get_has_what_both_releases_need_and_nothing_else() -> None:
    given_set = text(jwk("one", x5c=["abc"], padded=True), {"kty": "EC", "crv": "P-256"}, jwk("two", alg="RS512"))
    (found,) = json.loads(key_set.render(key_set.read(given_set)))["keys"]
    public = signing_keys.public_of(rsa_key("one"))
    assert found == {"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "one", "n": public.n, "e": "AQAB"}


def test_padding_and_leading_zeros_make_no_other_key() -> None:
    plain = key_set.read(text(jwk("one")))
    assert key_set.read(text(jwk("one", n=plain[0].n + "==", e="AAEAAQ"))) == plain


@pytest.mark.parametrize(
    ("given_set", "why"),
    [
        ("{", "it is not JSON"),
        ("[" * 100_000, "it is not JSON"),
        (json.dumps([jwk("one")]), "not a JSON Web Key Set"),
        ("{}", "not a JSON Web Key Set"),
        (text(1), "not a JSON Web Key Set"),
        (text(), "no RSA key for RS256"),
        (text({"kty": "EC", "kid": "a"}), "no RSA key for RS256"),
        (text(jwk("one", use="enc")), "no RSA key for RS256"),
        (text({**jwk("one"), "kid": None}), "no id"),
        (text(jwk("one", kid=5)), "no id"),
        (text(jwk("one", kid="a b")), "no id"),
        (text(jwk("one", kid="x" * 129)), "no id"),
        (text({**jwk("one"), "n": None}), "key one: its n and e must be numbers"),
        (text(jwk("one", n="%%%")), "key one: its n and e must be numbers"),
        (text(jwk("one", n="")), "key one: its n and e must be numbers"),
        (text(jwk("one", e="AAAA")), "key one: its n and e must be numbers"),
        (text(jwk("one", e="AQAA")), "not those of an RSA key"),
        (text(jwk("short") | {"n": "AQAB"}), "has 17 bits, and must have 2048 to 8192"),
        (text(jwk("one"), jwk("two", kid="one")), "two keys with the id one"),
        (text(jwk("one"), jwk("two", d="secret")), "a private or secret key"),
        (text(jwk("one"), {"kty": "oct", "k": "secret"}), "a private or secret key"),
        (text(*({"kty": "EC"} for _ in range(33))), "33 keys, and may have 32"),
        (text(jwk("one", x="x" * 100_000)), "characters, and may have 100000"),
    ],
)
def test_a_set_that_would_end_a_daemon_or_let_nobody_in_is_refused(given_set: str, why: str) -> None:
    with pytest.raises(UnusableKeySet, match=why) as refused:
        key_set.read(given_set)
    assert len(str(refused.value)) < 200
    assert "secret" not in str(refused.value).replace("secret key", "")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["keys", "kty", "kid", "n", "e", "alg", "use", "x"]), inner, max_size=6)
    ),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(json_values | st.builds(lambda keys: {"keys": keys}, st.lists(json_values, max_size=3)))
def test_anything_is_read_or_refused(value: Any) -> None:
    try:
        found = key_set.read(json.dumps(value))
    except UnusableKeySet:
        return
    assert found


# Put together with the operator's own


def cluster(**ref: str) -> Cluster:
    spec = {"auth": {"jwksRef": {"name": "issuer", **ref}}}
    return Cluster.parse({"metadata": {"name": "slurm", "namespace": "ns", "uid": "u"}, "spec": spec})


def source(given_set: str, key: str = "jwks.json") -> dict[str, TextSource]:
    return {"issuer": TextSource("issuer", exists=True, texts={key: given_set})}


OWN = signing_keys.public_of(rsa_key("own"))


def test_the_operators_keys_are_in_every_set() -> None:
    spec = cluster().spec
    assert names_of_sources(spec) == ("issuer",)
    made = gather(spec, source(text(jwk("one"), {**jwk("own"), "kid": OWN.kid})), [OWN])
    assert [one["kid"] for one in json.loads(made.text)["keys"]] == [OWN.kid, "one"]
    assert (made.problems, made.missing) == ((), ())
    alone = Cluster.parse({"metadata": {"name": "slurm", "namespace": "ns", "uid": "u"}, "spec": {}}).spec
    assert key_set.has(gather(alone, {}, [OWN]).text, OWN)
    assert gather(alone, {}).text == ""


@pytest.mark.parametrize(
    ("sources", "why"),
    [
        (source("{"), "spec.auth.jwksRef: jwks.json of ConfigMap issuer: it is not JSON"),
        (source("{}", "other"), r"there is no such text \(keys of the ConfigMap: other\)"),
        ({"issuer": TextSource("issuer", exists=True, refused="has 99 keys")}, "the ConfigMap has 99 keys"),
        (source(text(jwk("one", kid=OWN.kid))), "is that of a key that the operator signs with"),
    ],
)
def test_what_cannot_be_used_is_reported_by_field(sources: dict[str, TextSource], why: str) -> None:
    made = gather(cluster().spec, sources, [OWN])
    (problem,) = made.problems
    assert re.search(why, str(problem))
    assert made.text == ""


def test_a_missing_config_map_is_said_to_be_missing() -> None:
    (missing,) = gather(cluster().spec, {"issuer": TextSource("issuer", exists=False)}, [OWN]).missing
    assert str(missing) == "spec.auth.jwksRef: there is no ConfigMap issuer"
