#!/bin/bash
# Process 1 of one laboratory host, in mount, pid, uts and ipc namespaces of its own and in the host's network.
# usage: host.sh NAME ADDRESS FOLDER BOOT_ID BIND...   It lives as long as its standard input stays open.
set -eu
name=$1 address=$2 folder=$3 boot=$4
shift 4
exec 3<&0 </dev/null

mount --make-rprivate /
# An overlay may not keep its changes under what it covers: they go to memory.
mount -t tmpfs -o size=512m tmpfs "$folder/disk"
mkdir -p "$folder"/disk/{root,upper,work}
R=$folder/disk/root
mount -t overlay overlay -o "lowerdir=/,upperdir=$folder/disk/upper,workdir=$folder/disk/work" "$R"
mount -t proc proc "$R/proc"
mount -t sysfs sysfs "$R/sys"
mount --rbind /dev "$R/dev"
for where in run tmp dev/shm home; do mount -t tmpfs tmpfs "$R/$where"; done
chmod 1777 "$R/tmp" "$R/dev/shm"
mkdir -p -m 755 "$R/run/sshd" "$R/etc/lab"
mount -t tmpfs -o mode=755 tmpfs "$R/usr/local/bin"
mount -t tmpfs -o mode=755 tmpfs "$R/usr/local/sbin"
# The folder of the login outlives a reboot, the rest of the host does not. It hides what lay in ours.
mkdir -p -m 700 "$folder/home"
mount -t tmpfs -o mode=700 tmpfs "$R/root"
mkdir "$R/root/login"
mount --bind "$folder/home" "$R/root/login"
for bound in "$@"; do
  mkdir -p "$R$bound"
  mount --bind "$bound" "$R$bound"
  mount -o remount,bind,ro "$R$bound"
done

hostname "$name"
echo "$name" >"$R/etc/hostname"
printf '127.0.0.1 localhost\n%s %s\n' "$address" "$name" >"$R/etc/hosts"
sed -i 's|^root:\([^:]*\):\(.*\):/root:.*|root:\1:\2:/root/login:/bin/bash|' "$R/etc/passwd"
cp -a "$folder/bin/." "$R/usr/local/bin/"
cp "$folder/hostkey" "$R/etc/lab/hostkey"
chmod 600 "$R/etc/lab/hostkey"
cat - "$folder/sshd_extra" >"$R/etc/lab/sshd_config" <<'SSHD'
ListenAddress 0.0.0.0
HostKey /etc/lab/hostkey
AuthorizedKeysFile /etc/lab/authorized_keys
StrictModes no
PermitRootLogin prohibit-password
PasswordAuthentication no
UsePAM no
PidFile /run/sshd.pid
Subsystem sftp internal-sftp
SetEnv PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
SSHD
cp "$folder/authorized_keys" "$R/etc/lab/authorized_keys"
echo "$boot" >"$R/etc/lab/boot_id"
mount --bind "$R/etc/lab/boot_id" "$R/proc/sys/kernel/random/boot_id"

cd "$R"
mkdir -p .old
pivot_root . .old
cd /
umount -l /.old
export HOME=/root/login
/usr/sbin/sshd -D -e -f /etc/lab/sshd_config 2>/run/sshd.log &
trap 'exit 0' TERM
(cat <&3 >/dev/null; kill -TERM 1) &
exec 3<&-
while :; do wait -n || :; done
