"""Knows the programs that run other commands: no wildcard of an allow rule covers what they run."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


RUNNERS = _names(
    ". alias ash bash builtin busybox caffeinate chroot chronic chrt command compgen complete coproc csh dash doas "
    "entr env eval bunx exec fakeroot fish flock gdb hash ionice ksh linux32 linux64 ltrace mapfile nice nohup npx "
    "nsenter numactl osascript parallel pkexec pnpx prlimit proot proxychains rbash readarray rlwrap runuser script "
    "setarch setpriv setsid sg sh source ssh start-stop-daemon stdbuf strace su sudo systemd-run taskset tcsh time "
    "timeout torsocks toybox trap unbuffer unshare uvx valgrind watch xargs xvfb-run zsh"
)
"""Programs whose arguments are a command."""

SHELLS = _names("ash bash csh dash fish ksh rbash sh tcsh zsh")

TAKES_SCRIPTS = _names("eval parallel ssh trap watch")
"""Programs that join their arguments to one script."""

TAKES_SCRIPT_WORDS = _names("alias compgen complete mapfile readarray trap")
"""Programs of which one argument may be a script, even a single word."""


_FIND_RUNS = ("-exec", "-execdir", "-ok", "-okdir")
_FD_RUNS = ("-x", "-X", "--exec", "--exec-batch")


def runs_others(words: tuple[str, ...]) -> bool:
    """Whether a command passes part of its words on as a command."""
    name = words[0].rsplit("/", 1)[-1] if words else ""
    if name in ("find", "fd", "fdfind"):
        return any(word in (_FIND_RUNS if name == "find" else _FD_RUNS) for word in words)
    return name in RUNNERS


_INNER = {"nohup": 1, "time": 1, "timeout": 2, "npx": 1, "bunx": 1, "pnpx": 1, "uvx": 1}
"""Runners whose program is at a known position."""


def must_spell(words: tuple[str, ...]) -> int:
    """How many leading words a rule with a wildcard must spell out: all that determine which program runs."""
    if not runs_others(words):
        return 1
    inner = _INNER.get(words[0].rsplit("/", 1)[-1], len(words))
    plain = len(words) > inner and not any(word.startswith("-") for word in words[1 : inner + 1])
    return inner + must_spell(words[inner:]) if plain else len(words) + 1


_GIT_WRITES = _names(
    "add am apply bisect branch checkout cherry-pick clean commit fetch gc init merge mv notes pull rebase reset "
    "restore revert rm stash switch tag update-index update-ref worktree"
)
_GIT_READS = {
    "branch": _names("--list -l -a --all -r --remotes -v -vv --show-current --contains --merged --no-merged"),
    "tag": _names("--list -l --contains --points-at"),
    "stash": _names("list show"),
    "worktree": _names("list"),
    "notes": _names("list show"),
    "bisect": _names("log view"),
}
"""Commands that write, except in these forms or (branch and tag) without an argument."""


def writes_git(words: tuple[str, ...]) -> bool:
    """Whether this is a git command that writes to the repository."""
    if not words or words[0].rsplit("/", 1)[-1] != "git":
        return False
    arguments = list(words[1:])
    while arguments and arguments[0].startswith("-"):
        del arguments[: 2 if arguments[0] in ("-C", "-c", "--git-dir", "--work-tree", "--namespace") else 1]
    if not arguments or arguments[0] not in _GIT_WRITES:
        return False
    command, after = arguments[0], arguments[1:2]
    if not after:
        return command not in ("branch", "tag", "bisect", "notes", "worktree")
    return after[0] not in _GIT_READS.get(command, ())
