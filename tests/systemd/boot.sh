#!/bin/bash
# Boot systemd in namespaces of its own, on a copy of this machine's files that is thrown away: boot.sh FOLDER [DIR:AS ...]
# To be started as process 1 of new pid, mount, ipc and uts namespaces. Whatever fails ends it before systemd starts:
# a systemd that saw the machine's own files would clean up there.
set -euo pipefail
folder=$1 box=$1/root group=$(basename "$(dirname "$1")")
shift

if [ "${EVS_BOX:-}" != joined ]; then
  mount --make-rprivate /
  mkdir -p "$folder" "$folder/cgroup"
  mount -t cgroup2 cgroup2 "$folder/cgroup"
  mkdir "$folder/cgroup/$group"
  echo $$ >"$folder/cgroup/$group/cgroup.procs"
  EVS_BOX=joined exec unshare --cgroup "$0" "$folder" "$@"
fi
unset EVS_BOX

mount -t tmpfs -o mode=755 tmpfs "$folder"
mkdir "$folder/changed" "$folder/work" "$box"
mount -t overlay overlay -o "lowerdir=/,upperdir=$folder/changed,workdir=$folder/work" "$box"

mount -t proc proc "$box/proc"
mount --bind "$box/proc/sys" "$box/proc/sys"
mount -o remount,ro,bind "$box/proc/sys"
mount -t sysfs -o ro sysfs "$box/sys"
mount -t cgroup2 cgroup2 "$box/sys/fs/cgroup"
for each in run tmp var/tmp; do mount -t tmpfs -o mode=1777 tmpfs "$box/$each"; done
chmod 755 "$box/run"
mount -t tmpfs -o mode=755 tmpfs "$box/dev"
while read -r name minor major; do mknod -m 666 "$box/dev/$name" c "$minor" "$major"; done <<'DEVICES'
null 1 3
zero 1 5
full 1 7
random 1 8
urandom 1 9
tty 5 0
DEVICES
mkdir "$box/dev/shm" "$box/dev/pts"
mount -t tmpfs -o mode=1777 tmpfs "$box/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$box/dev/pts"
ln -s pts/ptmx "$box/dev/ptmx"
ln -s /proc/self/fd "$box/dev/fd"

# What would reach for the machine's kernel, devices or clock, or installs packages.
for unit in systemd-{udevd,udev-trigger,sysctl,modules-load,random-seed,remount-fs,update-utmp,binfmt}.service \
  systemd-udevd-{control,kernel}.socket apt-daily{,-upgrade}.timer apparmor.service dev-{hugepages,mqueue}.mount \
  sys-{kernel-debug,kernel-tracing,kernel-config,fs-fuse-connections}.mount proc-sys-fs-binfmt_misc.automount; do
  ln -sf /dev/null "$box/etc/systemd/system/$unit"
done
tr -d - <"$box/proc/sys/kernel/random/uuid" >"$folder/machine-id"
cp --remove-destination "$folder/machine-id" "$box/etc/machine-id"

for pair in "$@"; do
  mkdir -p "$box${pair#*:}"
  mount --bind "${pair%%:*}" "$box${pair#*:}"
done

cd "$box"
mkdir -p .machine
pivot_root . .machine
umount -l /.machine
# systemd hands credentials to units by mounts that it makes elsewhere.
mount --make-rshared /
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin container=test /lib/systemd/systemd --system --unit=basic.target
