#!/bin/sh
# PID 1 of a pod: runs one command, reaps whatever is orphaned, passes TERM on and ends with the command's code. When it
# ends the kernel kills every other process of the pod.
#
#   pod-init.sh COMMAND [ARGUMENT...]
#
# On fd 3 the node listens: "ready" here, "go" from the node, "started" and "exit CODE" here. The node can only answer
# while it lives, and by "ready" the parent-death signal is set: no command ever runs in a pod whose node is dead. Without
# "exit" it was killed: the launcher above does not tell (some versions of unshare end with 1 then).
child=
trap '[ -z "$child" ] || kill -TERM "$child" 2>/dev/null' TERM

echo ready >&3
read -r answer <&3 && [ "$answer" = go ] || exit 125

"$@" 3>&- &
child=$!
echo started >&3

# A trapped TERM ends `wait` early, with a code that is not the command's: ask again while the command is there.
while :; do
  wait "$child"
  code=$?
  kill -0 "$child" 2>/dev/null || break
done
wait "$child" 2>/dev/null
late=$?
[ "$late" -eq 127 ] || code=$late # 127: the code was already given
echo "exit $code" >&3
exit "$code"
