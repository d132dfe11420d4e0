"""The tree of errors: what can go wrong, and whose fault it is.

RaError
├── UserError                the user can mend it; the text names the fix           exit 2
│   ├── ConfigError          a wrong value: key, value, file and line, legal values
│   ├── UsageError           a wrong flag, argument or call of the library
│   └── NoModel              nothing is set up that could answer
├── Refused                  permission or trust; nothing was sent                  exit 4
├── Stopped                  a limit or a hook ended the run                        exit 3
├── Unfit                    the answer does not have the form that was asked for   exit 5
├── SessionInUse             another process writes this session                    exit 75
├── StoreError               the timeline's file cannot be used                     exit 1
│   └── StoreAway            its database cannot be reached now, and may come back
├── HookFailed               a hook raised or timed out                             exit 1
└── ProviderError            the model could not be called                          exit 1
    ├── Overflowed           the request is larger than the model's window
    ├── AuthFailed           the key is missing or wrong
    ├── QuotaExceeded        billing or quota: not retried
    ├── Unavailable          may pass: 429, 408, 409, 5xx, 529, connection; retried
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
    """Nothing is set up that could answer."""


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
    """`status` is the HTTP status, 0 when there was none."""

    def __init__(self, text: str, *, status: int = 0) -> None:
        super().__init__(text)
        self.status = status


class Overflowed(ProviderError):
    """`limit` is the window that the provider named, None when it named none; `sent` what it counted.

    `suspected`: nothing in its words says so. A shorter request tells whether it was that.
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
    """`retry_after_s` is what the server asked for, None when it did not. More than `tries` are vain."""

    def __init__(
        self, text: str, *, status: int = 0, retry_after_s: float | None = None, tries: int | None = None
    ) -> None:
        super().__init__(text, status=status)
        self.retry_after_s = retry_after_s
        self.tries = tries


class BadStream(ProviderError):
    """`partial` is what had arrived, and `usage` what the provider had told of its price."""

    def __init__(self, text: str, *, partial: Message | None = None, usage: Usage | None = None) -> None:
        super().__init__(text)
        self.partial = partial
        self.usage = usage or Usage()
