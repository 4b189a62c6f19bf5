from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nybble.plan.memory import Lifetime, share_buffers

LIFETIMES = st.lists(
    st.builds(
        lambda nbytes, first, length: Lifetime(nbytes, first, first + length),
        st.sampled_from([16, 32, 4096, 1 << 20]),
        st.integers(-1, 20),
        st.integers(0, 8),
    ),
    max_size=40,
)


@given(LIFETIMES)
def test_values_that_meet_never_share(lifetimes: list[Lifetime]) -> None:
    """Whatever the lifetimes: no buffer holds two values at one step, and each fits its buffer."""
    assigned, sizes = share_buffers(lifetimes)
    assert len(lifetimes) == len(assigned)
    for i, one in enumerate(lifetimes):
        assert one.nbytes <= sizes[assigned[i]]
        for j in range(i):
            if assigned[i] == assigned[j]:
                assert not one.meets(lifetimes[j])
                assert one.last < lifetimes[j].first or lifetimes[j].last < one.first


@given(LIFETIMES)
def test_no_buffer_is_idle_or_too_large(lifetimes: list[Lifetime]) -> None:
    """Every buffer holds a value of exactly its size."""
    assigned, sizes = share_buffers(lifetimes)
    for buffer, size in enumerate(sizes):
        held = [v.nbytes for v, b in zip(lifetimes, assigned, strict=True) if b == buffer]
        assert size == max(held)


def test_chain_needs_two_buffers() -> None:
    """Values that live from one step to the next alternate between two buffers."""
    lifetimes = [Lifetime(1024, step, step + 1) for step in range(50)]
    assert [1024, 1024] == share_buffers(lifetimes)[1]


def test_lifetimes_include_both_ends() -> None:
    """A call reads its inputs while it writes its result, so these two meet."""
    assert Lifetime(16, 0, 3).meets(Lifetime(16, 3, 5))
    assert not Lifetime(16, 0, 2).meets(Lifetime(16, 3, 5))
