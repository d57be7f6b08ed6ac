# Installs a Debian package with apt in a copy-on-write view of this system, uses it as nobody, removes it.
# Called with the package and an empty directory, in its own mount and PID namespace.
set -euo pipefail
package=$1 place=$2
mount --make-rprivate /
mount -t tmpfs none "$place"
mkdir "$place"/{upper,work,root}
mount -t overlay overlay -o "lowerdir=/,upperdir=$place/upper,workdir=$place/work" "$place/root"
root=$place/root
# Hides checkouts, root's programs, and every Python except the system's.
for folder in root home opt usr/local tmp work run; do
    [[ ! -d $root/$folder ]] || mount -t tmpfs none "$root/$folder"
done
chmod 1777 "$root/tmp"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
cp "$package" "$root/tmp/"
cat >"$root/tmp/use" <<'USE'
set -eu
punch --version
punchlistd --version
punch add Write the lexer
punch list
punch doctor
punch daemon service install --print | grep ExecStart=
grep ExecStart=/usr/bin/punchlistd /usr/lib/systemd/user/punchlistd.service
man --warnings punch-add >/dev/null
man --warnings punch-daemon-stop >/dev/null
man --warnings punch >/dev/null
apropos punch-add
echo '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"try","version":"1"}}}' | punch agent mcp
bash -c '. /usr/share/bash-completion/completions/punch; complete -p punch'
punch daemon stop
USE
chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive bash -euo pipefail -c '
cd /tmp
apt-get -qq install --yes --no-install-recommends -o Dpkg::Use-Pty=0 ./punchlist_*.deb
dpkg --verify punchlist
mkdir home && chown nobody home
(cd home && setpriv --reuid nobody --regid nogroup --clear-groups env HOME=/tmp/home XDG_RUNTIME_DIR=/tmp/home sh /tmp/use)
apt-get -qq purge --yes -o Dpkg::Use-Pty=0 punchlist
for rest in /usr/lib/punchlist /usr/bin/punch /usr/share/man/man1/punch.1.gz; do test ! -e $rest; done
echo removed without a rest
'
