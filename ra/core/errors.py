"""The tree of errors, with the exit code of each branch.

RaError
├── UserError                the user can fix it; the text says how                 exit 2
│   ├── ConfigError          a wrong value: key, value, file and line, legal values
│   ├── UsageError           a wrong flag, argument or call of the library
│   └── NoModel              no provider is set up
├── Refused                  permission or trust; nothing was sent                  exit 4
├── Stopped                  a limit or a hook ended the run                        exit 3
├── Unfit                    the answer does not fit the requested schema           exit 5
├── SessionInUse             another process writes this session                    exit 75
├── StoreError               the timeline's file cannot be used                     exit 1
│   └── StoreAway            the database is unreachable now, and may come back
├── HookFailed               a hook raised or timed out                             exit 1
└── ProviderError            the model could not be called                          exit 1
    ├── Overflowed           the request is larger than the model's window
    ├── AuthFailed           the key is missing or wrong
    ├── QuotaExceeded        billing or quota: not retried
    ├── Unavailable          temporary: 429, 408, 409, 5xx, 529, connection; retried
    └── BadStream            the answer could not be read, or broke off
"""

from ra.core.messages import Message
from ra.core.model import Usage
from ra.core.redaction import redacted


class RaError(Exception):
    exit_code = 1

    def __init__(self, *texts: object) -> None:
        super().__init__(*(redacted(text) if isinstance(text, str) else text for text in texts))


class UserError(RaError):
    exit_code = 2


class ConfigError(UserError):
    pass


class UsageError(UserError):
    pass


class NoModel(UserError):
    """No provider is set up."""


class Refused(RaError):
    exit_code = 4


class Stopped(RaError):
    exit_code = 3


class Unfit(RaError):
    exit_code = 5


class SessionInUse(RaError):
    exit_code = 75


class StoreError(RaError):
    pass


class StoreAway(StoreError):
    pass


class HookFailed(RaError):
    pass


class ProviderError(RaError):
    """`status` is the HTTP status, 0 without an HTTP response."""

    def __init__(self, text: str, *, status: int = 0) -> None:
        super().__init__(text)
        self.status = status


class Overflowed(ProviderError):
    """`limit` is the window that the provider named, `sent` the tokens that it counted; None where it did not say.

    `suspected`: the provider's message does not mention the length. The outcome of a shorter request decides.
    """

    def __init__(
        self,
        text: str,
        *,
        status: int = 400,
        limit: int | None = None,
        sent: int | None = None,
        suspected: bool = False,
    ) -> None:
        super().__init__(text, status=status)
        self.limit = limit
        self.sent = sent
        self.suspected = suspected


class AuthFailed(ProviderError):
    pass


class QuotaExceeded(ProviderError):
    pass


class Unavailable(ProviderError):
    """`retry_after_s` is the delay that the server asked for, if any; `tries` the number of attempts worth making."""

    def __init__(
        self, text: str, *, status: int = 0, retry_after_s: float | None = None, tries: int | None = None
    ) -> None:
        super().__init__(text, status=status)
        self.retry_after_s = retry_after_s
        self.tries = tries


class BadStream(ProviderError):
    """`partial` is the part of the answer that arrived, `usage` what the provider had reported until then."""

    def __init__(self, text: str, *, partial: Message | None = None, usage: Usage | None = None) -> None:
        super().__init__(text)
        self.partial = partial
        self.usage = usage or Usage()
