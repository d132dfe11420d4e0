"""Shell commands that try to be more than a rule means, and some that are just what it means."""

# A table is read by the line.
# ruff: noqa: E501

# What is allowed, then something that is not.
JOINS = [
    "{good}; {bad}", "{good} && {bad}", "{good} || {bad}", "{good} | {bad}", "{good} & {bad}", "{good}\n{bad}", "{good} |& {bad}",
    "{good} $({bad})", "{good} `{bad}`", '{good} "$({bad})"', "{good} <({bad})", "{good} >({bad})", "({good}; {bad})",
    "{{ {good}; {bad}; }}", "{good} ${{x:-$({bad})}}", "{good} $(({bad}))", "{good} <<< $({bad})", "if {good}; then {bad}; fi",
    "for i in 1; do {bad}; done; {good}", "while {bad}; do {good}; done", "{good} \\\n; {bad}", "f() {{ {bad}; }}; f; {good}",
    "! {bad}; {good}", "case a in a) {bad};; esac; {good}", "{good} \\ #; {bad}", "{good};{bad};", "[[ -f x ]] && {bad}; {good}",
    "coproc {bad}; {good}", "time {bad}; {good}", "{good} <<E; {bad}\nE", "{good} <<E\n$({bad})\nE", "{good} <<'E'\nE\n{bad}",
    "{good} <<-E\n\tE\n{bad}", "{good} ; # x\n{bad}", "{good} #\n{bad}", "select x in a; do {bad}; done; {good}",
    "until {bad}; do {good}; done", "{good} && (exec {bad})", "trap '{bad}' EXIT; {good}", "{good} &&\n{bad}", "{good} |\n{bad}",
    "exec 3< <({bad}); {good}", "{good} 2>&1; {bad}", "{good} > >({bad})", "eval '{bad}'; {good}", "{good}\r\n{bad}",
    "! ! {bad}; {good}", "! ! ! ({bad})", "{good} && ! ! {{ {bad}; }}", "( ! {bad}",
]  # fmt: skip
BAD = ["touch x", "rm -rf x", "curl evil", "python -c 1", "git push"]

SINGLE = [
    # Other programs under an allowed name, or more than a prefix means.
    "git difftool", "git -c core.pager=sh diff", "git -C /tmp diff", "git --exec-path=/tmp diff", "lsblk", "catx", "ls2",
    "git", "npm", "npm install", "npmrun x", "make", "make test2", "make test x", "make  install", "python -m pytest2",
    "python -m", "python -c 'x'", "python x.py", "'git diff'", '"git diff"', "git\\ diff", "./git diff", "/tmp/git diff",
    "../git diff", "git-diff", "GIT diff", "g'it' push", "Git diff", "$(echo git) diff", "g${x}it diff",
    # Variables, functions and aliases that change what a name means.
    "PATH=/tmp:$PATH git diff", "GIT_EXTERNAL_DIFF=./x git diff", "PAGER=./x git log", "LD_PRELOAD=./x.so ls", "X=1 ls",
    "PATH=/tmp; git diff", "export PATH=/tmp; git diff", "alias ls=rm; ls x", "ls() { touch x; }; ls", "function ls { touch x; }; ls",
    "declare -x PATH=/tmp; ls", "hash -p ./x ls; ls", "enable -n echo; echo", "set -a; ls", "unset PATH; ls", "readonly PATH=/tmp; ls",
    "BASH_ENV=x ls", "IFS=/ ls", "env X=1 touch x", "env -S 'touch x'", "env touch x", "source x", ". ./x",
    # Options that run or write.
    "git diff --output=/etc/x", "git diff --outp=x", "git diff --ext-diff", "git log --output x", "git log -O x", "git diff --no-index a b",
    "find . -exec touch x ;", "find . -exec touch x \\;", "find . -execdir sh {} +", "find . -delete", "find . -fprint x", "find . -ok ls \\;",
    "find . -fls x", "sort -o x y", "sort --output=x y", "sort --compress-program=./x y", "sort -uo x y", "sed -i s/a/b/ x", "sed 's/a/b/e' x",
    "sed -n 'w x' y", "sed --in-place s/a/b/ x", "sed '1e touch x' y", "sed -f x y", "awk 'BEGIN{system(\"touch x\")}'", "awk -f x",
    "awk '{print > \"x\"}' y", "awk 'BEGIN{\"date\" | getline}'", "tar cf x --checkpoint-action=exec=sh y", "tar -I ./x -xf y", "tar --to-command=./x -xf y",
    "tar -xf x -C /", "tar -xPf x", "tar cf /dev/null x --use-compress-program=./x", "xargs touch", "xargs -I{} sh -c {}", "ls | xargs touch",
    "timeout 60 touch x", "timeout 5 make", "timeout -k 1 60 make", "timeout 60 make -f x", "timeout 60 make SHELL=./x", "timeout 60 sh -c make",
    # Redirections.
    "echo x > y", "echo x >> .git/hooks/pre-commit", "echo x >| y", "echo x &> y", "cat < /etc/shadow", "cat <> y", "ls 2> y", "> y", "echo x >& y",
    "echo x 1>y", "cat <<E > y\nE", "git diff > .env", "exec > y; ls", "echo x >$HOME/y", "cat < x > y", "echo x > /dev/sda", "echo x > /dev/tcp/1.1.1.1/80",
    # Words that are known only when the command runs.
    "$x", "$x diff", "${x} diff", "git diff $x", "git diff ${x}", "git diff \"$x\"", "git diff $(x)", "git diff `x`", "git diff $((1))", "git diff *",
    "git diff ?x", "git diff [a-z]*", "git diff {--output=x,y}", "git diff {a..z}", "{git,diff}", "git diff $'--output=x'", "git diff $\"x\"", "git diff @(a|b)",
    "git diff ~root/x", "git diff ~+", "git ${x:-push}", "${x:=git} diff", "git diff ${!x}", "git diff $@", "git diff $*", "git diff $1", "git $'diff'",
    "git diff !(x)", "ls $(<x)", "echo ${x@P}", "echo $[1]", "ls ~-/x", "a=rm; $a x", "eval $x", "eval ls", "eval 'git diff'",
    # Denied, in disguise.
    "rm x", "r''m x", 'r""m x', "r\\m x", "'rm' x", '"rm" x', "\\rm x", "/bin/rm x", "/usr/bin/../bin/rm x", "command rm x", "builtin rm x", "exec rm x",
    "sudo ls", "sudo -u root rm x", "doas rm x", "nice rm x", "nohup rm x", "time rm x", "timeout 5 rm x", "env rm x", "env -i A=1 rm x", "xargs rm", "xargs -0 rm -rf",
    "find . -exec rm {} +", "find . -exec sh -c 'rm x' \\;", "sh -c 'rm x'", "bash -c \"rm x\"", "bash -lc 'rm x'", "sh <<E\nrm x\nE", "echo rm x | sh", "echo 'rm x' | bash",
    "busybox rm x", "setsid rm x", "stdbuf -o0 rm x", "eval 'rm x'", "eval rm x", "trap 'rm x' EXIT", "watch rm x", "ssh host rm x", "su -c 'rm x'", "script -c 'rm x'",
    "parallel rm ::: x", "echo $(rm x)", "cat <(rm x)", "git push --force", "git  push", "git \\\npush", "ls; rm x", "ls|rm x", "ls&rm x", "(rm x)", "{ rm x; }",
    "if true; then rm x; fi", "$'\\x72m' x", "strace rm x", "flock x rm y", "chroot / rm x", "unshare rm x", "ionice -c3 rm x", "curl -o x y", "CURL x", "xargs -a x rm",
    # What no parser takes.
    "git diff 'x", 'git diff "x', "git diff (", "git diff )", "git diff |", "git diff &&", "git diff $(", "git diff `", "git diff <<", "if git diff", "git diff ;;", "for",
    "git diff \x00 x", "git diff \u200b; touch x", "git\u00a0diff", "ls \x1b]0;x\x07", "git diff x\u2028touch x", "ls \x0btouch", "{", "}", "&", "git diff & &",
]  # fmt: skip
GOOD = [
    "git diff", "git diff HEAD", "git diff -- src/a.py", "git  diff   x", "git diff 'a b' \"c d\"", "git log --oneline -5", "npm run", "npm run test",
    "npm run test -- --watch", "ls", "ls -la src", "cat a b", "find . -name '*.py'", "find src -type f", "echo hello", "echo 'rm x'", "echo \"rm -rf /\"",
    "python -m pytest", "python -m pytest -x tests/a.py", "make test", "git diff | cat", "git diff && git log", "git diff; ls", "(git diff; ls)",
    "git diff 2>&1", "ls 2>/dev/null", "ls > /dev/null 2>&1", "cd src && git diff", "ls | sort -u", "sed -e s/a/b/ x", "awk '{print $1}' x",
    "grep -rn 'a|b' src", "grep -E 'x;y' z", "cat x", "timeout 60 make all", "true && ls", "ls\nls", "ls \\\n -l", "tar tf x",
]  # fmt: skip
