"""When an action that failed may be tried again: pure, the clock is an argument."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Failure:
    """The last of `count` failures in a row of one action. `retry_at`: on the caller's clock."""

    count: int
    reason: str
    permanent: bool
    retry_at: float


@dataclass
class Backoff:
    """1, 2, 4 … seconds up to `longest`; at once `longest` for an error that trying again cannot mend."""

    first: float = 1.0
    longest: float = 300.0
    failures: dict[str, Failure] = field(default_factory=dict)

    def may_run(self, key: str, now: float) -> bool:
        return key not in self.failures or now >= self.failures[key].retry_at

    def failed(self, key: str, reason: str, now: float, *, permanent: bool = False) -> Failure:
        count = self.failures[key].count + 1 if key in self.failures else 1
        pause = self.longest if permanent else min(self.longest, self.first * 2 ** min(count - 1, 60))
        self.failures[key] = failure = Failure(count, reason, permanent, now + pause)
        return failure

    def succeeded(self, key: str) -> None:
        self.failures.pop(key, None)

    def forget_old(self, now: float) -> None:
        """Drop what could have been tried again long ago and never was: the plan has moved on."""
        horizon = now - self.longest
        self.failures = {key: failure for key, failure in self.failures.items() if failure.retry_at > horizon}
