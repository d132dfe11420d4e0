"""What does a child see of our environment? Names that are known to be harmless, and never a key."""

import re
from collections.abc import Mapping

_KEPT = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_\w+|TZ|COLUMNS|LINES|NO_COLOR|CI|VIRTUAL_ENV|CONDA_PREFIX|CONDA_DEFAULT_ENV"
    r"|JAVA_HOME|GOPATH|GOROOT|GOFLAGS|GOBIN|CARGO_HOME|RUSTUP_HOME|RUSTFLAGS|NVM_DIR|NVM_BIN|PYENV_ROOT|PYENV_VERSION|RBENV_ROOT"
    r"|GEM_HOME|BUNDLE_PATH|DOTNET_ROOT|ANDROID_HOME|PKG_CONFIG_PATH|CPATH|LIBRARY_PATH|LD_LIBRARY_PATH|DYLD_LIBRARY_PATH|MANPATH"
    r"|CC|CXX|CFLAGS|CXXFLAGS|LDFLAGS|MAKEFLAGS|NODE_ENV|PYTHONPATH|PYTHONDONTWRITEBYTECODE|PYTHONHASHSEED|XDG_\w+_(HOME|DIRS)"
    r"|SSL_CERT_FILE|SSL_CERT_DIR|NIX_\w+|HOMEBREW_\w+|SOURCE_DATE_EPOCH|MSYSTEM|SYSTEMROOT|COMSPEC|PATHEXT|TERM"
)
_SECRET = re.compile(r"key|token|secret|passw|credential|auth|cookie", re.IGNORECASE)
_URL_PASSWORD = re.compile(r"://[^/\s]*:[^/\s]*@")


def clean(env: Mapping[str, str], also: tuple[str, ...] = ()) -> dict[str, str]:
    """The environment of children. `also` names what the user wants passed on, keys included."""
    kept = {
        name: value
        for name, value in env.items()
        if name in also or (_KEPT.fullmatch(name) and not _SECRET.search(name) and not _URL_PASSWORD.search(value))
    }
    kept.setdefault("PATH", "/usr/local/bin:/usr/bin:/bin")
    # Nobody sits before the child: no pager, no password prompt, no colours.
    return kept | {"TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": "true"}
