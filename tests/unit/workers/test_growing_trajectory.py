"""A trajectory is stored after each step, and no secret stays in it."""

from store.scrub import register_secret
from workers.trajectories import GrowingTrajectory


def test_each_message_is_there_once_and_scrubbed() -> None:
    register_secret("canary-of-a-growing-trajectory")
    growing = GrowingTrajectory()
    first = {"role": "system", "content": "Work."}
    second = {"role": "user", "content": "It is canary-of-a-growing-trajectory."}
    growing.scrubbed({"info": {"cost": 1}, "messages": [first]})
    stored = growing.scrubbed({"info": {"cost": 2}, "messages": [first, second]})
    assert stored == {
        "info": {"cost": 2},
        "messages": [first, {"role": "user", "content": "It is [secret removed]."}],
    }


def test_what_was_stored_before_does_not_change() -> None:
    growing = GrowingTrajectory()
    stored = growing.scrubbed({"messages": [{"content": "a"}]})
    growing.scrubbed({"messages": [{"content": "a"}, {"content": "b"}]})
    assert stored["messages"] == [{"content": "a"}]
