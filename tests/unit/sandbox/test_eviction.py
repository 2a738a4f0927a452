"""What is thrown away of what is kept, and what never is."""

import os
import time
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from sandbox.bare import BareRepository
from sandbox.bubblewrap_backend import BubblewrapBackend
from sandbox.eviction import GRACE_S, Kept, evict_mirrors, superfluous
from sandbox.types import CacheLimits, Limits

DAY_S = 86_400.0
NOW = 1_800_000_000.0


def kept(name: str, size: int, days: float) -> Kept:
    return Kept(name, size, NOW - days * DAY_S)


def names(found: "list[Kept] | tuple[Kept, ...]") -> str:
    return "".join(one.name for one in found)


def test_what_is_old_goes_and_then_the_longest_unused_until_the_rest_fits() -> None:
    things = [kept("a", 5, 1), kept("b", 5, 20), kept("c", 5, 3), kept("d", 5, 2)]
    assert names(list(superfluous(things, CacheLimits(100, 14 * DAY_S), NOW))) == "b"
    assert names(list(superfluous(things, CacheLimits(10, 14 * DAY_S), NOW))) == "bc"
    assert names(list(superfluous(things, CacheLimits(1, 14 * DAY_S), NOW))) == "bcda"


@given(st.lists(st.tuples(st.integers(0, 100), st.floats(0, 30))), st.integers(0, 1000), st.floats(0.001, 30))
def test_what_a_task_may_still_use_stays_and_the_rest_fits(
    things: list[tuple[int, float]], size: int, days: float
) -> None:
    all_of_them = [kept(str(number), *thing) for number, thing in enumerate(things)]
    gone = set(superfluous(all_of_them, CacheLimits(size, days * DAY_S), NOW))
    left = [one for one in all_of_them if one not in gone]
    assert all(NOW - one.used_at > GRACE_S for one in gone)
    assert sum(one.size for one in left if NOW - one.used_at > GRACE_S) <= size


def mirror(folder: Path, days: float) -> BareRepository:
    made = BareRepository(folder)
    made.ensure()
    (folder / "objects" / "filler").write_bytes(b"x" * 100_000)
    then = time.time() - days * DAY_S
    os.utime(folder / "info" / "attributes", (then, then))
    return made


def test_mirrors_that_nobody_used_are_removed_but_not_while_they_are_fetched_into(tmp_path: Path) -> None:
    old, busy, fresh = (mirror(tmp_path / f"{name}.git", days) for name, days in (("1", 30), ("2", 30), ("3", 1)))
    (tmp_path / "other").mkdir()
    with busy.locked(1):
        assert evict_mirrors(tmp_path, CacheLimits(10**9, 14 * DAY_S)) == 1
    assert not old.exists
    assert busy.exists
    fresh.ensure()  # a task uses it
    assert evict_mirrors(tmp_path, CacheLimits(1, 14 * DAY_S)) == 1
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["3.git", "other"]
    old.ensure()  # it can be made again
    assert old.exists


def test_bubblewraps_environments_are_removed_by_their_last_use(tmp_path: Path) -> None:
    backend = BubblewrapBackend(tmp_path, Limits())
    then = time.time() - 30 * DAY_S
    for name in ("env-old", "env-new", "base-old"):
        backend.environment(name).mkdir(parents=True)
    for name in ("env-old", "base-old"):
        os.utime(backend.environment(name), (then, then))
    assert backend.evict(CacheLimits(10**9, 14 * DAY_S)) == 1
    assert sorted(path.name for path in backend.environment("x").parent.iterdir()) == ["base-old", "env-new"]
