#!/bin/sh
# Becomes the command, with exactly the pod's environment. The variables come numbered (POD_ENV_0 … POD_ENV_<count-1>,
# each "NAME=value"), because a pod's own PATH or LD_PRELOAD must not touch the privileged steps before this one.
#
#   pod-exec.sh COMMAND [ARGUMENT...]
cd -- "$POD_CWD" || exit 126
index=$POD_ENV_COUNT
while [ "$index" -gt 0 ]; do
  index=$((index - 1))
  eval "set -- \"\$POD_ENV_$index\" \"\$@\""
done
exec env -i "$@"
