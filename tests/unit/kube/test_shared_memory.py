"""A namespace that remembers much forgets its own things first."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from slinky_operator.kube.shared_memory import SharedMemory

MOST = 12


def test_the_namespace_with_most_forgets_what_it_has_not_used_for_longest() -> None:
    memory: SharedMemory[int, str] = SharedMemory(4)
    memory.put("quiet", 1, "one")
    for key in range(3):
        memory.put("loud", key, "many")
    assert memory.get("loud", 0) == "many"
    memory.put("loud", 3, "more")
    assert [memory.get("loud", key) is not None for key in range(4)] == [True, False, True, True]
    assert memory.get("quiet", 1) == "one"
    assert len(memory) == 4


def test_of_namespaces_with_as_many_the_one_not_used_for_longest_forgets() -> None:
    memory: SharedMemory[int, str] = SharedMemory(2)
    memory.put("a", 1, "a")
    memory.put("b", 1, "b")
    assert memory.get("a", 1)
    memory.put("c", 1, "c")
    assert [memory.get(namespace, 1) for namespace in "abc"] == ["a", None, "c"]


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 30))))
def test_an_equal_share_is_never_forgotten(puts: list[tuple[str, int]]) -> None:
    memory: SharedMemory[int, int] = SharedMemory(MOST)
    for namespace, key in puts:
        memory.put(namespace, key, key)
    assert len(memory) <= MOST
    for namespace in "abcd":
        last = list(dict.fromkeys(key for where, key in reversed(puts) if where == namespace))
        assert all(memory.get(namespace, key) == key for key in last[: MOST // 4])
