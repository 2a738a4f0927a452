"""A task of which every text is hostile and as long as it can be."""

from typing import Any

from store.database import Database
from store.states import AttemptState, DeliveryState, TaskKind, TaskState, Trigger
from store.tables import Attempt, Decision, Delivery, History, Task, Verification

ATTACK = (
    '<script>alert(1)</script><img src=x onerror=alert(2)>" onfocus="alert(3)'
    "\x1b[31mred\x1b[0m\u202egnp.exe\u2066{{7*7}}"
)
LONG = ATTACK + "A" * 200_000
HUGE = ATTACK + "A" * 10_000_000


def add_hostile_task(database: Database) -> int:
    """Add it, at work, and a failed delivery beside it; returns the task's id."""
    with database.session() as session:
        task = Task(
            repository_id=100,
            kind=TaskKind.ISSUE,
            trigger=Trigger.LABEL,
            target="100/issues/666",
            target_number=666,
            requested_by=ATTACK[:100],
            title=LONG,
            text=HUGE,
            reason=ATTACK,
            dimension=ATTACK[:50],
            state=TaskState.ATTEMPTING,
            base_sha=ATTACK[:60],
            base_ref=ATTACK[:100],
            pr_number=1,
            pr_url="javascript:alert(4)",
        )
        session.add(task)
        session.flush()
        assert task.id is not None
        model = "<b>m</b>"
        line = {"model": model, "share": 1.0, "propensity": 1.0, "expected_score": 0.5, "expected_cost_usd": 0.1}
        near = {"key": ATTACK, "similarity": 0.9, "model": model, "score": 1.0, "cost_usd": 0.1, "final": True}
        near |= {"title": ATTACK, "link": ATTACK, "task_key": "task:1", "repository": "octo/shop"}
        vote = {"voter": ATTACK, "weight": 1.0, "shares": {model: 1.0}, "confidence": 1.0, "reason": ATTACK}
        decision = Decision(
            task_id=task.id,
            chosen=model,
            propensity=1.0,
            ranked=[line],
            votes=[vote],
            neighbours=[near],
            reasons=[ATTACK],
        )
        session.add(decision)
        session.flush()
        assert decision.id is not None
        step = {
            "role": "assistant",
            "content": LONG,
            "extra": {"actions": [{"command": LONG, "tool_call_id": "1"}], "cost": 0.1},
        }
        output = {"role": "tool", "tool_call_id": "1", "content": "", "extra": {"raw_output": HUGE, "returncode": 1}}
        attempt = Attempt(
            task_id=task.id,
            decision_id=decision.id,
            number=1,
            model=model,
            state=AttemptState.VERIFIED,
            exit_status="Submitted",
            error=LONG,
            steps=1,
            patch=f"diff --git a/x b/x\n+{HUGE}\n",
            trajectory={"messages": [{"role": "system", "content": LONG}, step, output]},
        )
        session.add(attempt)
        session.flush()
        assert attempt.id is not None
        tests: dict[str, Any] = {"command": ATTACK, "fail_to_pass": [ATTACK], "pass_to_fail": [ATTACK]}
        tests["after"] = {"passed": 1, "failed": 0, "timed_out": False, "output_tail": ATTACK * 200}
        signal = {"name": ATTACK, "value": None, "weight": 0.1, "evidence": ATTACK}
        session.add(
            Verification(
                attempt_id=attempt.id, score=0.1, verdict=ATTACK[:40], summary=ATTACK, signals=[signal], tests=tests
            )
        )
        session.add(History(task_id=task.id, state=TaskState.ATTEMPTING, message=ATTACK))
        session.add(
            Delivery(guid="hostile", event=ATTACK[:90], payload=b"{}", state=DeliveryState.FAILED, reason=ATTACK)
        )
        return task.id
