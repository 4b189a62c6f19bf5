"""The parts of the Vulkan device that need no adapter: hazards, free ranges, the cache's file."""

from __future__ import annotations

import struct
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nybble.devices.vulkan.api import bindings
from nybble.devices.vulkan.cache import PipelineStore, cache_folder
from nybble.devices.vulkan.features import Features, enabling_chain
from nybble.devices.vulkan.hazards import barriers_before
from nybble.devices.vulkan.memory import free_range, take_range
from nybble.plan import Dispatch, Region

IDENTITY = bytes(range(24))
CACHED = struct.pack("<II", 32, 1) + IDENTITY + b"compiled" * 100


def dispatch(reads: list[Region], writes: list[Region]) -> Dispatch:
    """A dispatch that touches these regions."""
    return Dispatch(0, "", "", tuple(reads), tuple(writes), Region(0, 0, 16), (1, 1, 1), 0, 0)


def whole(buffer: int) -> Region:
    """A buffer of 64 bytes."""
    return Region(buffer, 0, 64)


@pytest.mark.parametrize(
    ("first", "second", "waits"),
    [
        (([1], [2]), ([2], [3]), True),  # reads what was written
        (([1], [2]), ([3], [1]), True),  # writes what was read
        (([1], [2]), ([3], [2]), True),  # writes what was written
        (([1], [2]), ([1], [3]), False),  # both only read buffer 1
        (([1], [2]), ([3], [4]), False),
    ],
)
def test_a_dispatch_waits_only_for_what_it_needs(
    first: tuple[list[int], list[int]], second: tuple[list[int], list[int]], *, waits: bool
) -> None:
    """A barrier stands where bytes are shared and one side writes them, nowhere else."""
    dispatches = [dispatch([*map(whole, r)], [*map(whole, w)]) for r, w in (first, second)]
    assert (False, waits) == barriers_before(dispatches)


def test_pieces_of_one_buffer_are_independent() -> None:
    """Ranges that do not meet need no barrier; one byte in common does."""
    low, high, across = Region(1, 0, 32), Region(1, 32, 32), Region(1, 31, 2)
    assert (False, False) == barriers_before([dispatch([], [low]), dispatch([], [high])])
    assert (False, True) == barriers_before([dispatch([], [low]), dispatch([across], [])])


def test_a_barrier_covers_all_that_was_before_it() -> None:
    """After a barrier only what came since counts."""
    chain = [
        dispatch([whole(1)], [whole(2)]),
        dispatch([whole(1)], [whole(3)]),
        dispatch([whole(2)], [whole(4)]),
        dispatch([whole(3)], [whole(5)]),
        dispatch([whole(4), whole(5)], [whole(6)]),
    ]
    assert (False, False, True, False, True) == barriers_before(chain)


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 40)), max_size=60))
def test_ranges_never_overlap_and_all_come_back(steps: list[tuple[bool, int]]) -> None:
    """Taken ranges are disjoint and inside; when all are given back, one range is free again."""
    free, taken = [(0, 256)], list[tuple[int, int]]()
    for takes, number in steps:
        if takes:
            offset = take_range(free, number)
            if offset is None:
                assert all(room < number for _, room in free)
                continue
            assert all(offset + number <= o or o + n <= offset for o, n in taken)
            assert 0 <= offset <= 256 - number
            taken.append((offset, number))
        elif taken:
            free_range(free, *taken.pop(number % len(taken)))
        assert 256 == sum(n for _, n in free) + sum(n for _, n in taken)
        assert free == sorted(free)
    for item in taken:
        free_range(free, *item)
    assert [(0, 256)] == free


def test_cache_is_read_as_written(tmp_path: Path) -> None:
    """What is saved is loaded, and nothing else is left in the folder."""
    store = PipelineStore(tmp_path, IDENTITY, "driver 1")
    assert b"" == store.load()
    assert store.save(CACHED)
    assert CACHED == PipelineStore(tmp_path, IDENTITY, "driver 1").load()
    assert [store.path] == list(store.path.parent.iterdir())


@pytest.mark.parametrize("at", [0, 8, 39, 40, 44, 48, 72, len(CACHED) + 39])
def test_damaged_cache_is_discarded(tmp_path: Path, at: int) -> None:
    """One wrong byte anywhere, or a file cut off there, and nothing is loaded."""
    store = PipelineStore(tmp_path, IDENTITY, "driver 1")
    store.save(CACHED)
    good = store.path.read_bytes()
    store.path.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
    assert b"" == store.load()
    store.path.write_bytes(good[:at])
    assert b"" == store.load()
    assert store.save(CACHED)
    assert CACHED == store.load()


def test_cache_of_another_driver_is_discarded(tmp_path: Path) -> None:
    """A whole file of another device or cache version is not handed to the driver."""
    other = PipelineStore(tmp_path, bytes(24), "driver 1")
    assert not other.save(CACHED)
    ours = PipelineStore(tmp_path, IDENTITY, "driver 1")
    ours.save(CACHED)
    ours.path.rename(other.path)
    assert b"" == other.load()
    assert b"" == PipelineStore(tmp_path, IDENTITY, "driver 2").load()


def test_cache_without_a_folder_is_only_slower(tmp_path: Path) -> None:
    """Where nothing can be written, saving says so and raises nothing."""
    blocked = tmp_path / "file"
    blocked.write_bytes(b"")
    store = PipelineStore(blocked, IDENTITY, "driver 1")
    assert not store.save(CACHED)
    assert b"" == store.load()


def test_two_processes_may_save_at_once(tmp_path: Path) -> None:
    """A reader sees one writer's whole file at any time, never a mixture or half."""
    code = f"""
    import sys
    from pathlib import Path
    from nybble.devices.vulkan.cache import PipelineStore
    store = PipelineStore(Path({str(tmp_path)!r}), {IDENTITY!r}, "driver 1")
    data = {CACHED[:32]!r} + sys.argv[1].encode() * 300_000
    for _ in range(60):
        assert store.save(data)
    """
    writers = [
        subprocess.Popen([sys.executable, "-c", textwrap.dedent(code), letter]) for letter in "ab"
    ]
    store, seen = PipelineStore(tmp_path, IDENTITY, "driver 1"), set[bytes]()
    while any(writer.poll() is None for writer in writers):
        if store.path.exists():
            seen.add(store.load()[32:])
    assert [0, 0] == [writer.wait() for writer in writers]
    assert seen
    assert seen <= {b"a" * 300_000, b"b" * 300_000}
    assert [store.path] == list(store.path.parent.iterdir())


def test_cache_lies_where_the_system_keeps_caches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """XDG's variable on Linux, the user's own folders elsewhere."""
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert tmp_path / "nybble" == cache_folder()
    for ignored in ("", "relative/folder"):
        monkeypatch.setenv("XDG_CACHE_HOME", ignored)
        assert Path.home() / ".cache" / "nybble" == cache_folder()
    monkeypatch.setattr(sys, "platform", "darwin")
    assert Path.home() / "Library" / "Caches" / "nybble" == cache_folder()
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    assert tmp_path / "nybble" == cache_folder()


def test_a_user_without_a_home_keeps_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container's user may have no home: nothing is kept, and nothing is raised."""

    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    store = PipelineStore(cache_folder(), IDENTITY, "driver 1")
    assert not store.save(CACHED)
    assert b"" == store.load()


def test_a_struct_younger_than_the_bindings_is_passed_in_the_form_of_an_older_one() -> None:
    """The bfloat16 features' struct has its own type, and its fields stand where C has them."""
    name = "VkPhysicalDeviceShaderBfloat16FeaturesKHR"
    on = ("shaderBFloat16Type", "shaderBFloat16CooperativeMatrix")
    chain = enabling_chain(Features(on, (), (name,)))

    data = bytes(bindings().ffi.buffer(bindings().ffi.cast("char*", chain.pNext), 28))
    structure_type, following, *fields = struct.unpack("=I4xQ3I", data)

    assert (1000141000, 0, [1, 0, 1]) == (structure_type, following, fields)
