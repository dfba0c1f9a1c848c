#!/bin/sh
# Brings the workspace's disk up, gives every privilege away and becomes the agent, under an init that reaps (G33).
#
# A month of work may be on the disk. It is formatted only when three things agree: blkid finds nothing (exit 2), its beginning can be
# read, and that is all zeros, as on a disk that nobody has written to. Whatever else is the case stops the pod and touches nothing.
#
#   HOLDFAST_DISK_DEVICE     a block device to be mounted at HOLDFAST_WORKSPACE_ROOT; unset: the disk is mounted there already
#   HOLDFAST_DISK_NAME       whose disk it is: the workspace's name; needed with a device
set -eu

root=${HOLDFAST_WORKSPACE_ROOT:-/workspace}
uid=1001
gid=1001
sample_bytes=1048576

say() { printf 'holdfast: %s\n' "$*" >&2; }

stop() {
  say "$*"
  say "Nothing was written to the disk. The pod stops."
  exit 78
}

# A label holds 16 bytes, fewer than a name may have: it carries the beginning of the name's SHA-256.
label_of() { printf 'hf-%s' "$(printf %s "$1" | sha256sum | cut -c 1-13)"; }

# Nothing is known to be on it: only a disk that nobody has written to is taken for an empty one.
format_disk() {
  sample=$(mktemp)
  head -c "$sample_bytes" -- "$device" > "$sample" ||
    stop "blkid finds nothing on $device, and its beginning cannot be read: it may be broken, and is not taken for an empty one."
  [ "$(stat -c %s -- "$sample")" = "$sample_bytes" ] ||
    stop "$device has less than $sample_bytes bytes that can be read."
  cmp -s -n "$sample_bytes" -- "$sample" /dev/zero ||
    stop "blkid knows nothing of what is on $device, and it is not empty: its first $sample_bytes bytes are not all zero. If nothing on it is needed, wipe it by hand (blkdiscard, or dd from /dev/zero)."
  rm -f -- "$sample"
  say "$device is empty: formatting it for $name"
  mkfs.ext4 -q -L "$label" -E "root_owner=$uid:$gid" -- "$device" >&2 || {
    say "$device could not be formatted. The pod stops."
    exit 78
  }
}

# Something is on it: it must be a file system of ours, of this workspace.
assert_ours() {
  [ "$type" = ext4 ] || stop "$device holds ${type:-something that is no file system}, not ext4."
  found=$(blkid -p -s LABEL -o value -- "$device") || stop "blkid cannot read the label of $device (exit $?)."
  [ "$found" = "$label" ] ||
    stop "$device is another workspace's: its label is '$found', that of $name would be '$label'."
}

mount_disk() {
  [ -n "$device" ] || stop "HOLDFAST_DISK_DEVICE is set and names no device."
  name=${HOLDFAST_DISK_NAME:-}
  [ -n "$name" ] || stop "HOLDFAST_DISK_NAME is not set: it cannot be told whose disk $device must be."
  label=$(label_of "$name")
  kind=$(stat -L -c %F -- "$device") || stop "$device is not there."
  [ "$kind" = "block special file" ] || stop "$device is a $kind, not a block device."

  status=0
  type=$(blkid -p -s TYPE -o value -- "$device") || status=$?
  case $status in
    0) assert_ours ;;
    2) format_disk ;;
    *) stop "blkid cannot tell what is on $device (exit $status)." ;;
  esac

  status=0
  e2fsck -p -- "$device" >&2 || status=$?
  case $status in
    0 | 1) ;; # Clean, or mended.
    *)
      say "$device has errors that are not mended without somebody who decides (e2fsck exit $status). The pod stops."
      exit 78
      ;;
  esac
  mkdir -p -- "$root"
  mount -t ext4 -o noatime,nodev,nosuid -- "$device" "$root" || {
    say "$device could not be mounted at $root. The pod stops."
    exit 78
  }
  # After mounting, so that a disk that was made larger is. One that cannot be has the size it had.
  resize2fs "$device" >&2 || say "$device could not be grown: it goes on with the size that it has."
}

if [ "${HOLDFAST_DISK_DEVICE+set}" = set ]; then
  device=$HOLDFAST_DISK_DEVICE
  mount_disk
fi

if [ "$(id -u)" = 0 ]; then
  exec setpriv --reuid "$uid" --regid "$gid" --clear-groups --inh-caps=-all --ambient-caps=-all --bounding-set=-all \
    --no-new-privs -- tini -- "$@"
fi
exec setpriv --no-new-privs -- tini -- "$@"
