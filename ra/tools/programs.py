"""Which programs run or write something else than their name says? What a wildcard in an allow rule must not cover."""

import re
from typing import NamedTuple


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


RUNNERS = _names(
    ". ash bash builtin busybox caffeinate chroot chronic chrt command coproc csh dash doas entr env eval "
    "bunx exec fakeroot fish flock gdb ionice ksh linux32 linux64 ltrace nice nohup npx nsenter numactl osascript "
    "parallel pkexec pnpx prlimit proot proxychains rbash rlwrap runuser script setarch setpriv setsid sg sh "
    "source ssh start-stop-daemon stdbuf strace su sudo systemd-run taskset tcsh time timeout torsocks "
    "toybox trap unbuffer unshare uvx valgrind watch xargs xvfb-run zsh"
)
"""Programs whose arguments are a command."""

SHELLS = _names("ash bash csh dash fish ksh rbash sh tcsh zsh")

TAKES_SCRIPTS = _names("eval parallel ssh trap watch")
"""Those that join their arguments to one script."""


class _Risk(NamedTuple):
    """Options that run programs, write files or look elsewhere: short letters, long names, and other words."""

    letters: str = ""
    names: str = ""
    words: str = ""


_RISKS = {
    "git": _Risk(
        "cCoxOuSe",
        "config-env git-dir work-tree exec-path output ext-diff textconv upload-pack receive-pack exec extcmd tool "
        "edit open-files-in-pager no-index template gpg-sign sign separate-git-dir super-prefix attr-source",
        # Transports and subcommands that run programs, and settings that name some.
        r"(.*=)?ext::.*|foreach|run|(alias|core|credential|diff|difftool|filter|gpg|include|includeif|init|merge|mergetool"
        r"|pager|protocol|remote|sequence|submodule|url|web)\..*",
    ),
    "find": _Risk(words=r"-exec|-execdir|-ok|-okdir|-delete|-fprint.*|-fls|-files0-from"),
    "fd fdfind": _Risk("xX", "exec exec-batch"),
    "rg": _Risk("z", "pre hostname-bin search-zip"),
    "sort": _Risk("oT", "output compress-program temporary-directory"),
    "uniq": _Risk(words=r"[^-].*"),
    "tar bsdtar gtar": _Risk(
        "IFCP",
        "checkpoint-action to-command use-compress-program rsh-command info-script new-volume rmt-command directory "
        "absolute-names",
        r"[^-].*[IFCP].*",
    ),
    "rsync": _Risk("e", "rsh rsync-path"),
    "sed gsed": _Risk("inf", "in-place file", r"(?!-).*(/\w*[ew]|[;{}\s\d$!,][ewWrR]|^[ewWrR]\b).*|-\w*e.+"),
    "awk gawk mawk nawk": _Risk("fiEel", "file include exec load source", r".*(system|getline|\||>|@).*"),
    "curl": _Risk("oOKTdFxX", "output remote-name config upload-file data form proxy request unix-socket", r"file:.*"),
    "wget": _Risk("OPieo", "output directory-prefix input-file execute use-askpass post body config"),
    "vi vim nvim ex view rvim": _Risk("cSsu", "cmd", r"\+.*"),
    "less more most": _Risk("oOkK", "log-file lesskey-file lesskey-src", r"\+.*"),
    "man": _Risk("PHKC", "pager html config-file"),
    "make gmake": _Risk("fCI", "file makefile directory eval include-dir", r"\w+\s*[:+?]?=.*"),
    "zip": _Risk("T", "unzip-command"),
    "ps": _Risk(words=r".*e.*"),
    "date": _Risk("s", "set"),
    "dd": _Risk(words=r"of=.*"),
    "tee openssl": _Risk(words=r".*"),
    "npm pnpm yarn bun": _Risk("C", "prefix script-shell node-options userconfig", r"exec|x|dlx"),
    "pip pip3": _Risk("ti", "target index-url extra-index-url config-settings prefix root", r"git\+.*"),
    "uv poetry hatch pdm pipenv rye": _Risk(
        "tiC", "target index extra-index config prefix root directory project", r"git\+.*|run|shell|exec|x|tool"
    ),
    "tree": _Risk("o"),
    "yq": _Risk("i", "inplace split-exp from-file"),
    "split csplit": _Risk(words=r".*"),
    "xxd": _Risk(words=r"[^-].*"),
    "file": _Risk("C", "compile"),
    "sqlite3": _Risk(words=r"\s*\..*|.*(load_extension|writefile|edit)\s*\(.*|-cmd|-init"),
    "psql": _Risk("fovL", "file output variable set log-file", r".*(\\|(?i:program)).*"),
    "mysql mariadb": _Risk("T", "tee pager", r".*(\\|(?i:system|outfile|dumpfile)).*"),
    "cmake ctest": _Risk("PESC", "build-tool make-program toolchain", r"-D.*"),
    "ninja": _Risk("fC"),
    "mvn gradle gradlew ant tox nox": _Risk("fsbcIDPpl", "file settings init-script build-file config project-dir"),
    "eslint prettier tsc jest vitest mocha": _Risk(
        "cfopr",
        "config rulesdir resolve-plugins plugin parser format output outDir outFile project require loader import file "
        "global setup runner testRunner environment testEnvironment reporter resolver transform rootDir root",
    ),
    "mypy pylint": _Risk(names="python-executable config-file load-plugins init-hook rcfile"),
    "kubectl helm": _Risk(names="kubeconfig post-renderer", words=r"exec|plugin|edit|debug|run"),
    "terraform tofu": _Risk(words=r"-chdir.*|-plugin-dir.*|console|workspace"),
    "gh": _Risk(words=r"alias|extension|extensions|config"),
    "scp sftp": _Risk("SDoFPb"),
    "nc ncat netcat": _Risk("ec", "exec sh-exec lua-exec"),
    "socat": _Risk(words=r".*"),
    "gcc g++ cc c++ clang clang++": _Risk("Bo", "plugin specs", r"-wrapper|-fplugin.*|-specs.*|@.*"),
    "ip": _Risk(words=r"netns|exec|-b.*|-n.*"),
    "pytest py.test": _Risk("pco", "rootdir confcutdir override-ini basetemp debug junit log-file pastebin"),
    "cargo": _Risk("Z", "config manifest-path"),
    "go": _Risk(words=r"-exec.*|-toolexec.*|-vettool.*|-o.*|-C.*|-overlay.*|-modfile.*"),
    "docker podman nerdctl": _Risk("vH", "volume mount privileged pid network net host cap-add device security-opt"),
    "tcpdump": _Risk("zw"),
    "nmap": _Risk("o", "script"),
    "journalctl": _Risk(names="vacuum-size vacuum-time vacuum-files rotate flush"),
}
_RISK_OF = {name: risk for names, risk in _RISKS.items() for name in names.split()}
_INTERPRETER = re.compile(r"(python|pypy|perl|ruby|node|nodejs|deno|php|lua|tclsh|expect|Rscript|julia)[\d.]*")
_INNER = {"nohup": 1, "time": 1, "timeout": 2, "npx": 1, "bunx": 1, "pnpx": 1, "uvx": 1}
"""Runners whose program stands at a known place."""

_CODE = _Risk("ceErRp", "eval print command exec run require import", "-")


def must_spell(words: tuple[str, ...]) -> int:
    """How many leading words a rule must spell out itself to allow this command."""
    if not words:
        return 1
    name = words[0].rsplit("/", 1)[-1]
    if name in RUNNERS:
        # `timeout 60 make` may be spelled up to its program; of the others no wildcard stands for any word.
        inner = _INNER.get(name, len(words))
        plain = len(words) > inner and not any(word.startswith("-") for word in words[1 : inner + 1])
        return inner + must_spell(words[inner:]) if plain else len(words)
    if _INTERPRETER.fullmatch(name) and words[1:2] == ("-m",) and len(words) > 2:
        return 2 + must_spell(words[2:])  # `python -m pytest` is pytest
    risk = _RISK_OF.get(name) or (_CODE if _INTERPRETER.fullmatch(name) else None)
    if risk is None:
        return 1
    risky = [place for place, word in enumerate(words[1:], 1) if _is_risky(word, risk)]
    return risky[-1] + 1 if risky else 1


def _is_risky(word: str, risk: _Risk) -> bool:
    if risk.words and re.fullmatch(risk.words, word, re.DOTALL):
        return True
    if word.startswith("--"):
        given = word[2:].partition("=")[0]
        # Long options may be shortened as long as they stay unique: --outp is --output.
        return bool(given) and any(name.startswith(given) or given.startswith(name) for name in risk.names.split())
    return word.startswith("-") and any(letter in word for letter in risk.letters)
