#!/bin/sh
# Become systemd, as process 1 of namespaces whose files are this machine's under a layer in memory.
# boot.sh FOLDER GROUP [SHOWN ...]: an empty folder, a control group for all processes, and folders
# that may be mounted here and have to be there, too.
set -eu

if [ "${INSIDE-}" = "" ]; then
    echo $$ > "$2/cgroup.procs"
    INSIDE=1 exec unshare --pid --mount --ipc --uts --cgroup --fork --kill-child \
        --propagation private sh "$0" "$@"
fi

folder=$1
shift 2
mount -t tmpfs tmpfs "$folder"
cd "$folder"
mkdir upper work root
mount -t overlay -o "lowerdir=/,upperdir=$folder/upper,workdir=$folder/work" overlay root
cd root
for it in run dev etc/systemd/system; do mount -t tmpfs -o mode=755 tmpfs "$it"; done
for it in tmp var/tmp; do mount -t tmpfs tmpfs "$it"; done

# systemd would set limits of the kernel, which are those of this machine.
mount -t proc proc proc
mount --bind proc/sys proc/sys
mount -o remount,bind,ro proc/sys
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
for it in null zero full random urandom tty; do
    touch "dev/$it"
    mount --bind "/dev/$it" "dev/$it"
done
ln -s pts/ptmx dev/ptmx
mkdir dev/shm dev/pts run/base run/outside

# Of the machine's own units there are these alone.
for it in basic final multi-user network-online shutdown sockets sysinit umount; do
    cp "lib/systemd/system/$it.target" run/base
done
for it in "$@"; do
    mkdir -p "./$it"
    mount --bind "$it" "./$it"
    mount -o remount,bind,ro "./$it"
done
pivot_root . run/outside
umount -l /run/outside
# Credentials are mounted in a namespace of their own, from which they have to come back.
mount --make-rshared /
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin container=other SYSTEMD_GENERATOR_PATH=/run/none \
    SYSTEMD_UNIT_PATH=/etc/systemd/system:/run/base \
    /lib/systemd/systemd --log-target=null --unit=multi-user.target
