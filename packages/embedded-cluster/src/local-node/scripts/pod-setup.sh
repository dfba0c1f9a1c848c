#!/bin/sh
# Builds a pod's root and enters it. Runs as PID 1 of the pod's new namespaces, still with the node's rights, so it
# reads nothing that a pod could have written: the table and the skeleton are the node's own.
#
#   pod-setup.sh ROOT SKELETON TABLE HOSTNAME COMMAND [ARGUMENT...]
#
# COMMAND drops the rights and goes on as PID 1 (pod-init.sh). On fd 3 the node listens: "pid N", as the node sees it.
# What the container says is fd 1 and fd 4: fd 2 is for the launchers, who complain of how the container ended.
set -eu
read -r pid _ </proc/self/stat
echo "pid $pid" >&3

root=$1 skeleton=$2 table=$3 name=$4
shift 4

hostname "$name" 2>/dev/null || true # only the name in a prompt depends on it
mount -t tmpfs -o mode=755,nosuid,nodev,size=4m tmpfs "$root"
cd "$root"
cp -a "$skeleton/." .
mount -a -T "$table"
pivot_root . .host
cd /
umount -l /.host
mount -o remount,bind,ro,nosuid,nodev /
exec setsid "$@" 2>&4 4>&-
