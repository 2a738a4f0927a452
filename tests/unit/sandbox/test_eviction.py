"""What is thrown away of what is kept, and what never is."""

import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import cast

import pytest
from docker import APIClient
from hypothesis import given
from hypothesis import strategies as st

from sandbox.bare import BareRepository
from sandbox.bubblewrap_backend import BubblewrapBackend
from sandbox.checkout import Mirror
from sandbox.docker_cache import ImageCache
from sandbox.eviction import GRACE_S, Kept, evict_mirrors, superfluous, tidy_mirrors
from sandbox.named_locks import NamedLocks
from sandbox.remotes import GitRemote
from sandbox.types import CacheLimits, Limits
from tests.support.repositories import commit_files, make_repository

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


def test_a_mirror_that_a_task_takes_up_meanwhile_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = mirror(tmp_path / "1.git", 30)

    def looked_through(sizes: Iterable[Kept], limits: CacheLimits, now: float) -> Sequence[Kept]:
        found = superfluous(sizes, limits, now)
        old.ensure()
        return found

    monkeypatch.setattr("sandbox.eviction.superfluous", looked_through)
    assert evict_mirrors(tmp_path, CacheLimits(10**9, 14 * DAY_S)) == 0
    assert old.exists


def test_a_mirror_that_is_being_made_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "1.git").mkdir()
    (tmp_path / "1.git" / "HEAD").touch()
    assert evict_mirrors(tmp_path, CacheLimits(10**9, 14 * DAY_S)) == 0


def test_a_mirror_that_many_fetches_have_left_in_pieces_is_packed_anew(tmp_path: Path) -> None:
    upstream, folder = tmp_path / "upstream", tmp_path / "1.git"
    make_repository(upstream, {"a.txt": "0\n"})
    mirror = Mirror(folder, allow_local=True)
    for number in range(1, 52):
        commit_files(upstream, {"a.txt": f"{number}\n"})
        mirror.fetch(GitRemote(str(upstream)), ["refs/heads/main"], timeout_s=30)
    newest = mirror.resolve("refs/heads/main")
    orphan = mirror.tree_with_patch(newest, "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-51\n+patched\n")
    (folder / "objects" / "pack" / "tmp_pack_killed").write_bytes(b"PACK")
    used_at = BareRepository(folder).used_at

    with BareRepository(folder).locked(1):
        assert tidy_mirrors(tmp_path, within_s=60) == []  # it is fetched into
    assert len(list(folder.glob("objects/pack/*.pack"))) == 51

    assert tidy_mirrors(tmp_path, within_s=60) == []
    assert len(list(folder.glob("objects/pack/*.pack"))) == 1
    assert not list(folder.glob("objects/pack/tmp_*"))
    assert BareRepository(folder).used_at == used_at  # which is no use of it
    mirror.archive(newest, tmp_path / "tree.tar")
    mirror.archive(orphan, tmp_path / "patched.tar")  # a task may still be at it


def test_a_mirror_that_git_cannot_pack_is_named(tmp_path: Path) -> None:
    mirror(tmp_path / "1.git", 1)
    (tmp_path / "1.git" / "config").write_text("[core]\n\tbare = perhaps\n")
    (words,) = tidy_mirrors(tmp_path, within_s=60)
    assert words.startswith("1.git: ")
    assert "perhaps" in words


class Images:
    """A daemon with one image of ours, which another process uses while it is looked at."""

    def __init__(self, cache: ImageCache) -> None:
        self._cache = cache
        self.removed: list[str] = []
        self.used_meanwhile = True

    def images(self, **_: object) -> list[dict[str, object]]:
        return [{"Id": "sha256:1", "RepoTags": ["acrouter/env:1"], "Created": 1}]

    def history(self, _image: str) -> list[dict[str, int]]:
        if self.used_meanwhile:
            self._cache.note_use("acrouter/env:1")
        return [{"Size": 5}]

    def remove_image(self, name: str, **_: object) -> None:
        self.removed.append(name)


def test_an_image_that_a_task_takes_up_meanwhile_stays(tmp_path: Path) -> None:
    cache = ImageCache("tests", tmp_path)
    daemon = Images(cache)
    assert cache.evict(cast("APIClient", daemon), CacheLimits(10**9, 14 * DAY_S), NamedLocks()) == 0
    daemon.used_meanwhile = False
    then = time.time() - 30 * DAY_S
    os.utime(next(tmp_path.iterdir()), (then, then))
    assert cache.evict(cast("APIClient", daemon), CacheLimits(10**9, 14 * DAY_S), NamedLocks()) == 1
    assert daemon.removed == ["acrouter/env:1"]


def test_a_use_that_cannot_be_written_down_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ImageCache("tests", tmp_path / "file").note_use("acrouter/env:1")


def test_bubblewraps_environments_are_removed_by_their_last_use(tmp_path: Path) -> None:
    backend = BubblewrapBackend(tmp_path, Limits())
    then = time.time() - 30 * DAY_S
    for name in ("env-old", "env-new", "base-old"):
        backend.environment(name).mkdir(parents=True)
    for name in ("env-old", "base-old"):
        os.utime(backend.environment(name), (then, then))
    with backend._environments.held("env-old"):  # a task is about to take it up
        assert backend.evict(CacheLimits(10**9, 14 * DAY_S)) == 0
    assert backend.evict(CacheLimits(10**9, 14 * DAY_S)) == 1
    assert sorted(path.name for path in backend.environment("x").parent.iterdir()) == ["base-old", "env-new"]


def test_what_a_killed_process_left_half_made_or_half_removed_goes_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend, plenty = BubblewrapBackend(tmp_path, Limits()), CacheLimits(10**9, 14 * DAY_S)
    environments, mirrors = backend.environment("x").parent, tmp_path / "mirrors"
    for left in (environments / ".draft-1", environments / ".env-old.12.doomed", mirrors / ".1.git.12.doomed"):
        (left / "lib").mkdir(parents=True)
    os.utime(environments / ".draft-1", (0, 0))  # as a copied environment has its original's time
    assert (backend.evict(plenty), evict_mirrors(mirrors, plenty)) == (0, 0)
    assert [path.name for path in environments.iterdir()] == [".draft-1"]  # somebody may be at it
    assert list(mirrors.iterdir()) == []
    later = time.time() + GRACE_S + 60
    monkeypatch.setattr(time, "time", lambda: later)
    backend.evict(plenty)
    assert list(environments.iterdir()) == []
