"""A meter in memory."""

from sandbox.errors import BudgetExceeded, StopRequested


class CountingMeter:
    """A `sandbox.agent_types.Meter` that refuses what would pass `cap_usd`, and stops after `stop_after` calls."""

    def __init__(self, cap_usd: float = 100.0, stop_after: int | None = None) -> None:
        self.cap_usd = cap_usd
        self.stop_after = stop_after
        self.reserved: dict[str, float] = {}
        self.settled: dict[str, float] = {}

    def reserve(self, usd: float) -> str:
        if self.stop_after is not None and len(self.reserved) >= self.stop_after:
            raise StopRequested("A person asked to stop.")
        open_usd = sum(amount for name, amount in self.reserved.items() if name not in self.settled)
        if self.spent_usd + open_usd + usd > self.cap_usd:
            raise BudgetExceeded("The task's budget is used up.")
        name = f"r{len(self.reserved)}"
        self.reserved[name] = usd
        return name

    def settle(self, reservation: str, usd: float) -> None:
        assert reservation in self.reserved
        assert reservation not in self.settled, "settled twice"
        self.settled[reservation] = usd

    @property
    def spent_usd(self) -> float:
        return sum(self.settled.values())

    @property
    def open(self) -> list[str]:
        return [name for name in self.reserved if name not in self.settled]
