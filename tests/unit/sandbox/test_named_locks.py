"""Who works on one name waits for nobody who works on another."""

import threading
import time

from sandbox.named_locks import NamedLocks


def test_one_name_is_held_by_one_at_a_time_and_no_name_stays() -> None:
    locks = NamedLocks()
    inside: list[str] = []
    most = [0]

    def work(name: str) -> None:
        with locks.held(name):
            inside.append(name)
            most[0] = max(most[0], inside.count("a"))
            time.sleep(0.01)
            inside.remove(name)

    threads = [threading.Thread(target=work, args=(name,)) for name in "aaaabbbb"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]
    assert len(locks) == 0


def test_another_name_is_free_meanwhile() -> None:
    locks = NamedLocks()
    with locks.held("a"), locks.if_free("b") as other, locks.if_free("a") as same:
        assert (other, same) == (True, False)
    with locks.if_free("a") as free:
        assert free
    assert len(locks) == 0


def test_a_failure_lets_go() -> None:
    locks = NamedLocks()
    for _ in range(2):
        try:
            with locks.held("a"):
                raise ValueError
        except ValueError:
            pass
    assert len(locks) == 0
