"""The ruler itself: streams, tracks, hindsight, peers and figures."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.routing import peers
from bench.routing.command import FULL, planned_runs
from bench.routing.contest import RELEASED, ROUTER, Arena, Run, contest, run_all
from bench.routing.errors import StreamError
from bench.routing.figures import figures
from bench.routing.hindsight import best_chain, chain_rewards
from bench.routing.intervals import half_width, quantile
from bench.routing.plots import not_dominated, plot
from bench.routing.reference import reference, worse
from bench.routing.report import tables
from bench.routing.stream import Stream, StreamKind, read_stream
from bench.routing.synthetic import RECIPES, Recipe, synthetic_stream
from bench.routing.tracks import Player, Track, Tried, play
from routing.pool import ModelPool
from tests.support.streams import write_stream


@pytest.fixture
def stream(tmp_path: Path) -> Stream:
    return read_stream("s", **write_stream(tmp_path))


def test_a_stream_is_read_from_its_files(stream: Stream) -> None:
    assert stream.models == ("small", "large")
    assert stream.resolved.tolist() == [[1, 0], [1, 1], [0, 1]]
    assert stream.ran.tolist() == [[True, False], [True, True], [True, True]]
    assert stream.rewards.ravel().tolist() == pytest.approx([0.99, -0.2, 0.99, 0.8, -0.01, 0.8])
    assert stream.run_only().rewards[0].tolist() == pytest.approx([0.99, -np.inf])


@pytest.mark.parametrize(
    ("file", "old", "new", "words"),
    [
        ("models", '"large"', '"lager"', "unknown model 'large'. Did you mean 'lager'?"),
        ("models", "25", "-25", "models.1 (large): 'output_per_1m' is -25"),
        ("models", '"small"', '"large"', "'large' is there twice"),
        ("results", "t2,large,1,1,2.0,9", "", "1 cells are missing, the first is 'large' on the task 't2'"),
        ("results", "t0,small,1", "t0,small,7", "line 2: 'resolved' is 7; it must be within [0, 1]"),
        ("results", "t0,small", "t9,small", "line 2: the task 't9' is not in the tasks' file"),
        ("results", "cost_usd", "price", "has no column 'cost_usd'"),
        ("tasks", "bug_fixing", "bug_fixin", "unknown dimension 'bug_fixin'. Did you mean 'bug_fixing'?"),
        ("tasks", '"t1"', '"t0"', "line 2: the task 't0' is there twice"),
        ("tasks", "{", "", "line 1: is not JSON"),
        ("models", '"small"', '"my small one"', "models.0: name: String should match pattern"),
        ("results", "t0,small,1,1,0.1", "t0,small,1,1,0,1", "line 2: has more cells than there are columns"),
        ("results", "t0,small", '"t0,small' + 140_000 * "x", "is not CSV: field larger than field limit"),
        ("results", "t2,large,1,1,2.0,9", "t2,large", "line 7: 'resolved' is None; it must be a number"),
    ],
)
def test_bad_input_is_named(tmp_path: Path, file: str, old: str, new: str, words: str) -> None:
    paths = write_stream(tmp_path)
    paths[file].write_text(paths[file].read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    with pytest.raises(StreamError) as caught:
        read_stream("s", **paths)
    assert words in str(caught.value)


@pytest.mark.parametrize("file", ["tasks", "results", "models"])
def test_files_may_come_from_a_spreadsheet_and_must_be_utf8(tmp_path: Path, stream: Stream, file: str) -> None:
    paths = write_stream(tmp_path)
    text = paths[file].read_text(encoding="utf-8").replace("\n", "\r\n")
    paths[file].write_bytes(text.encode("utf-8-sig"))
    read = read_stream("s", **paths)
    assert (read.tasks, read.models, read.usd.tolist()) == (stream.tasks, stream.models, stream.usd.tolist())

    paths[file].write_bytes(text.encode("utf-16"))
    with pytest.raises(StreamError, match=f"{file}.*: cannot be read: it is not a text in UTF-8"):
        read_stream("s", **paths)


def test_a_prompt_may_hold_what_others_take_for_the_end_of_a_line(tmp_path: Path) -> None:
    paths = write_stream(tmp_path)
    text = paths["tasks"].read_text(encoding="utf-8").replace("crash number 0", "crash\u2028number\x850")
    paths["tasks"].write_text(text, encoding="utf-8")

    assert read_stream("s", **paths).tasks[0].text.startswith("crash\u2028number\x850")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    paths = write_stream(tmp_path)
    for path in paths.values():
        path.rename(path.with_suffix(".gone"))
        with pytest.raises(StreamError, match="there is no such file"):
            read_stream("s", **paths)
        path.with_suffix(".gone").rename(path)


class Scripted:
    """Tries the same chain everywhere and notes when it is told what."""

    def __init__(self, *chain: int) -> None:
        self.chain = chain
        self.heard: list[tuple[str, int]] = []

    def first(self, task: int) -> int:
        self.heard.append(("asked", task))
        return self.chain[0]

    def following(self, task: int, tried: Sequence[Tried]) -> int | None:
        return self.chain[len(tried)] if len(tried) < len(self.chain) else None

    def reveal(self, task: int, tried: Sequence[Tried]) -> None:
        self.heard.append(("told", task))


def test_the_tracks_differ_in_what_stops_the_attempts(stream: Stream) -> None:
    one = play(stream, range(3), Scripted(1, 0), Track.ONE_SHOT, 0)
    honest = play(stream, range(3), Scripted(1, 0), Track.HONEST, 0)
    label = play(stream, range(3), Scripted(0, 1), Track.LABEL, 0)

    assert one.tried == ((1,), (1,), (1,))
    assert honest.tried == ((1, 0), (1,), (1,))  # the patch of `large` on the first task does not apply
    assert label.tried == ((0,), (0,), (0, 1))
    assert label.regrets.tolist() == pytest.approx([0, 0, 0.8 - (1 - 0.21)])
    assert (one.avgperf, honest.avgperf, label.avgperf) == pytest.approx((200 / 3, 100, 100))


def test_an_outcome_is_revealed_after_the_delay(stream: Stream) -> None:
    at_once, late = Scripted(0), Scripted(0)
    play(stream, range(3), at_once, Track.ONE_SHOT, 0)
    play(stream, range(3), late, Track.ONE_SHOT, 1)

    assert at_once.heard[:4] == [("asked", 0), ("told", 0), ("asked", 1), ("told", 1)]
    assert late.heard == [("asked", 0), ("asked", 1), ("told", 0), ("asked", 2)]


def test_hindsight_agrees_with_playing(stream: Stream) -> None:
    for track in Track:
        chain = best_chain(stream, track)
        rewards, resolved, usd = chain_rewards(stream, chain, track)
        played = play(stream, range(3), peers.Chain(stream, chain), track, 0)
        assert played.resolved.tolist() == resolved.tolist()
        assert played.usd.tolist() == pytest.approx(usd.tolist())
        assert played.cumreg == pytest.approx((stream.rewards.max(axis=1) - rewards).sum())
    assert play(stream, range(3), peers.oracle_player(stream), Track.ONE_SHOT, 0).cumreg == 0.0


def test_the_best_chain_knows_which_models_may_be_used(stream: Stream) -> None:
    """`large` solves the one task where `small` may not be used, and fails where both may."""
    own = replace(
        stream,
        resolved=np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0]]),
        allowed=np.array([[False, True], [True, False], [True, True]]),
    )
    for track in Track:
        chains: list[tuple[int, ...]] = [(0,), (1,), (0, 1), (1, 0)][: 2 * track.attempts]
        cumregs = {chain: play(own, range(3), peers.Chain(own, chain), track, 0).cumreg for chain in chains}
        assert cumregs[best_chain(own, track)] == min(cumregs.values())
        for chain, cumreg in cumregs.items():
            assert (own.rewards.max(axis=1) - chain_rewards(own, chain, track)[0]).sum() == pytest.approx(cumreg)


def test_the_cheapest_model_that_may_be_used_stands_in_for_a_chain(stream: Stream) -> None:
    turned = replace(stream, pool=ModelPool(tuple(reversed(stream.pool.models))))
    three = replace(turned, allowed=np.array([[True, True], [True, False], [False, True]]))
    assert [peers.Chain(three, ()).first(task) for task in range(3)] == [1, 0, 1]


def test_every_player_learns_a_stream_by_the_rules() -> None:
    drawn = synthetic_stream("drawn", Recipe(models=3, tasks=40), 1)
    drawn.votes["good"] = drawn.rewards.argmax(axis=1)  # type: ignore[index]
    drawn.votes["bad"] = drawn.rewards.argmin(axis=1)  # type: ignore[index]
    all_players = contest({"drawn": Arena.of(drawn)}, 1)
    runs = [Run("drawn", name, track, 0, 0) for name in all_players.players["drawn"] for track in Track]

    found = figures(run_all(all_players, runs, 2))

    assert found == figures(run_all(all_players, runs, 1))  # processes change nothing
    for name in all_players.players["drawn"]:
        prefix = "" if name == ROUTER else f"{name}."
        assert found[f"{prefix}drawn.track1.permuted.cumreg"] >= 0
    assert found["peer.oracle.drawn.track1.permuted.cumreg"] == 0
    good, bad = (found[f"peer.published_{n}.drawn.track1.permuted.cumreg"] for n in ("good", "bad"))
    assert good < found["peer.hedge.drawn.track1.permuted.cumreg"] < bad
    shown = tables(found, ["drawn.track1"], ["", "peer.oracle"])
    assert shown.splitlines()[4].startswith("| oracle | ")


def test_the_released_order_may_be_run_with_several_seeds(stream: Stream) -> None:
    players = contest({"own": Arena.of(stream)}, 0)
    chosen = []

    def asked(arena: Arena, track: Track, seed: int) -> Player:
        chosen.append(seed)
        return peers.Chain(arena.stream, [seed % 2])

    players = replace(players, players={"own": {ROUTER: asked}})
    runs = [Run("own", ROUTER, Track.ONE_SHOT, 0, RELEASED - seed) for seed in range(3)]
    found = figures(run_all(players, runs, processes=1))

    assert chosen == [0, 1, 2]
    alone = [peers.Chain(stream, [seed % 2]) for seed in range(3)]
    cumregs = [play(stream, range(3), player, Track.ONE_SHOT, 0).cumreg for player in alone]
    assert found["own.released.cumreg"] == pytest.approx(np.mean(cumregs))
    assert found["own.released.cumreg_ci95"] > 0


def test_how_often_a_stream_is_played_depends_on_what_it_is_there_for(stream: Stream) -> None:
    kinds = {
        "own": StreamKind.MAIN,
        "own.run_only": StreamKind.RUN_ONLY,
        "id": StreamKind.SINGLE_TURN,
        "drawn": StreamKind.DRAWN,
        "drift/0": StreamKind.DRIFT,
    }
    arenas = {name: Arena.of(replace(stream, name=name, kind=kind)) for name, kind in kinds.items()}
    size = replace(FULL, permutations=5, delayed=2, ablations=3, run_only=4, synthetic=1, seeds=2, delays=(0, 10))
    runs = planned_runs(contest(arenas, 5), size)
    assert len(set(runs)) == len(runs)

    def played(player: str, stream: str, track: Track = Track.ONE_SHOT, delay: int = 0) -> tuple[int, int]:
        mine = [r.permutation for r in runs if (r.player, r.stream, r.track, r.delay) == (player, stream, track, delay)]
        released = sum(number <= RELEASED for number in mine)
        return released, len(mine) - released

    assert [played(ROUTER, name) for name in kinds] == [(2, 5), (1, 4), (2, 0), (1, 1), (1, 0)]
    assert [played(ROUTER, name, delay=10) for name in kinds] == [(1, 2), (0, 0), (1, 0), (0, 0), (0, 0)]
    assert [played(ROUTER, name, Track.HONEST) for name in kinds] == [(2, 5), (1, 4), (0, 0), (1, 1), (1, 0)]
    # Who neither learns nor draws is the same in every order, and finds nothing.
    assert [played("peer.oracle", name) for name in kinds] == [(1, 0), (1, 0), (1, 0), (1, 0), (0, 0)]
    assert [played("ablation.no_exploration", name) for name in kinds] == [(1, 3), *[(0, 0)] * 4]


@pytest.mark.parametrize("name", RECIPES)
def test_a_drawn_stream_is_the_same_each_time(name: str) -> None:
    one, other = (synthetic_stream(name, RECIPES[name], 3) for _ in range(2))
    assert one.tasks == other.tasks
    assert (one.rewards == other.rewards).all()
    assert (one.passes >= one.resolved).all()


def test_a_figure_that_gets_worse_beyond_chance_is_named() -> None:
    accepted = {"a.permuted.cumreg": 10.0, "a.permuted.cumreg_se": 0.5, "b.released.cumreg": 5.0}
    assert worse({"a.permuted.cumreg": 10.9, "b.released.cumreg": 99.0}, accepted) == []
    assert worse({"a.permuted.cumreg": 11.1}, accepted) == [
        "a.permuted.cumreg is 11.10; 10.00 was accepted, and 0.98 more at most."
    ]


def test_the_reference_holds_standard_errors_and_has_something_to_hold() -> None:
    held = [name for name in reference() if name.endswith("cumreg_se")]
    assert len(held) > 10
    assert all(reference()[name] > 0 for name in held)


@pytest.mark.parametrize("count", [2, 3, 8, 100])
def test_the_intervals_hold_the_truth_as_often_as_they_say(count: int) -> None:
    rng = np.random.default_rng(count)
    samples = rng.normal(size=(4000, count))
    held = np.mean([abs(values.mean()) <= half_width(values) for values in samples])
    assert held == pytest.approx(0.95, abs=0.012)


def test_the_quantiles_are_those_of_the_tables() -> None:
    found = [quantile(freedom) for freedom in (1, 2, 7, 30)]
    assert found == pytest.approx([12.7062, 4.3027, 2.3646, 2.0423], abs=1e-4)


def test_the_frontier_leaves_out_what_is_dearer_and_no_better() -> None:
    places = [(20.0, 64.0), (100.0, 75.0), (140.0, 75.0), (20.0, 30.0), (90.0, 60.0), (5.0, 33.0)]
    assert not_dominated(places) == [(5.0, 33.0), (20.0, 64.0), (100.0, 75.0)]


def test_a_contest_is_plotted_by_stream_and_track(tmp_path: Path, stream: Stream) -> None:
    players = contest({"own": Arena.of(stream)}, 2)
    runs = [Run("own", name, Track.LABEL, 0, number) for name in (ROUTER, "peer.random") for number in (-1, 0, 1)]
    runs.append(Run("own", "peer.best_chain", Track.LABEL, 0, -1))
    written = plot(run_all(players, runs, processes=1), tmp_path / "plots")
    assert [path.name for path in written] == ["own_track3_regret.svg", "own_track3_frontier.svg"]
    for path in written:
        assert "best_chain" in path.read_text(encoding="utf-8")
