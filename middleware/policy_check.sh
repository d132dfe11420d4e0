#!/bin/sh
# Middleware for ra: refuse tool calls that a policy forbids. The model is told why and goes on.
#
#   agent:
#     middleware:
#       beforeToolExecution: [./middleware/policy_check.sh]
#
# It reads {"hook": …, "loop": …, "tool_call": {…}} on stdin. The call comes last and is all that counts here: the
# conversation may quote a forbidden command. Inside JSON text a quote is written \", so the last "tool_call": is ours.
set -eu
call=$(sed 's/.*"tool_call"://')

deny() {
  printf '{"deny": "policy: %s"}\n' "$1"
  exit 0
}

case "$call" in
  *'rm -rf /'* | *'rm -fr /'*) deny 'nothing is removed from the root' ;;
  *'git push'*'--force'* | *'git push -f'*) deny 'no forced pushes' ;;
  *'curl '*'| sh'* | *'curl '*'| bash'* | *'wget '*'| sh'*) deny 'no script from the web is run unread' ;;
  *'.env"'* | *'id_rsa'* | *'id_ed25519'*) deny 'no secrets' ;;
esac
