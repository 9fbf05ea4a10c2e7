#!/bin/sh
# Run inside the Dockerfile: lays out the files of the image.
#   image-files.sh BINARIES CONFIG IMAGE
# The binaries, stripped, with a name for each subcommand; the libraries that they and libpq load; the
# certificates that the system trusts; one user who owns nothing but the state.
set -eu
binaries=$1 config=$2 image=$3

libraries() {
  ldd "$@" | sed -n 's/^.* => \(\/[^ ]*\) .*$/\1/p; s/^[[:space:]]*\(\/lib[^ ]*\) .*$/\1/p' | sort -u
}

mkdir -p "$image/usr/local/bin" "$image/etc/gpu-scheduler" "$image/etc/ssl/certs" "$image/tmp"
for one in "$binaries"/*; do
  strip -o "$image/usr/local/bin/$(basename "$one")" "$one"
done
for name in scheduler controller webhook agent; do
  ln -s gpu-scheduler "$image/usr/local/bin/$name"
done
cp "$config"/* "$image/etc/gpu-scheduler/"
cp /etc/ssl/certs/ca-certificates.crt "$image/etc/ssl/certs/"

folder=/usr/lib/$(uname -m)-linux-gnu
# NVIDIA's library, which its container runtime adds, asks for the last four by name.
for library in $(libraries "$binaries"/* "$folder/libpq.so.5") "$folder/libpq.so.5" \
    "$folder/libdl.so.2" "$folder/libpthread.so.0" "$folder/librt.so.1" "$folder/libm.so.6"; do
  mkdir -p "$image$(dirname "$library")"
  cp -Lu "$library" "$image$library"
done

echo 'scheduler:x:10001:10001::/var/lib/gpu-scheduler:/nonexistent' >"$image/etc/passwd"
echo 'scheduler:x:10001:' >"$image/etc/group"
echo 'hosts: files dns' >"$image/etc/nsswitch.conf"
chmod 1777 "$image/tmp"
mkdir -p "$image/var/lib/gpu-scheduler"
chown 10001:10001 "$image/var/lib/gpu-scheduler"
