#!/bin/sh
# Make a small image for podman out of this system's own Python (Debian, Ubuntu); no registry is asked.
# Usage: python_image.sh NAME.  Needs podman (apt-get install --no-install-recommends podman runc conmon).
set -eu
name=$1
python=$(readlink -f /usr/bin/python3)
version=$(basename "$python")
programs="sh echo cat env head ls sleep true yes" # what cells may expect to find, as in the images that people use
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root" # mktemp closes it, and cells run as another user
mkdir -p "$root/usr/bin" "$root/usr/lib" "$root/usr/lib64" "$root/etc" "$root/tmp" "$root/proc" "$root/sys" "$root/dev"
chmod 1777 "$root/tmp"
for link in bin lib lib64; do ln -s "usr/$link" "$root/$link"; done
cp -a "$python" "$root/usr/bin/"
ln -s "$version" "$root/usr/bin/python3"
for program in $programs; do cp -L "/bin/$program" "$root/usr/bin/"; done
tar -C /usr/lib -c --exclude=__pycache__ --exclude=test --exclude='config-*' --exclude=ensurepip --exclude=idlelib \
  --exclude=lib2to3 "$version" | tar -C "$root/usr/lib" -x
for binary in "$root"/usr/bin/* "/usr/lib/$version"/lib-dynload/*.so; do ldd "$binary"; done 2>/dev/null |
  grep -o '/[^ ]*\.so[^ ]*' | sort -u | while read -r library; do
  folder=$(readlink -f "$(dirname "$library")")
  mkdir -p "$root$folder"
  cp -L "$library" "$root$folder/"
done
echo 'nobody:x:65534:65534::/tmp:/bin/false' >"$root/etc/passwd"
echo 'nogroup:x:65534:' >"$root/etc/group"
tar -C "$root" -c . | podman import --quiet - "$name"
