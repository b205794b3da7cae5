#!/usr/bin/env bash
# Installs the package in a Debian root, next to mariadb-server, and uses it there; then builds the image and runs it.
# Called by `./x package --test` as root. The root is made once by mmdebstrap and kept.
#
#   packaging/test.sh OUT KEPT [package|image]    OUT: what packaging/build.sh made; KEPT: where roots are kept
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
out="$(cd "$1" && pwd)" kept="$2" part="${3:-all}"
mkdir -p "$kept"

# made ROOT PACKAGE...: a Debian root as an archive.
made() {
  # Its ending says that it is an archive.
  local archive="$kept/$1.tar" new="$kept/$1.new.tar"
  shift
  [ -e "$archive" ] && return
  local packages="$*"
  # A root that is lost in a crash is made again: dpkg need not sync its files.
  mmdebstrap --quiet --variant=apt --include="${packages// /,}" --aptopt='APT::Install-Recommends "false"' \
    --dpkgopt=force-unsafe-io bookworm "$new" /etc/apt/sources.list.d/debian.sources
  mv "$new" "$archive"
}

test_package() {
  made with-mariadb ca-certificates adduser debconf logrotate man-db procps mariadb-server
  root="$(mktemp -d "$kept/root.XXXXXX")"
  trap 'rm -rf "$root"' EXIT
  tar -xf "$kept/with-mariadb.tar" -C "$root" --exclude='./dev/*'
  mkdir "$root/test" "$root/full"
  cp "$out"/cohort-server_*.deb "$here/test_in_root.sh" "$root/test/"
  # A mount, process and network namespace of its own: nothing stays when its first process ends.
  unshare --mount --pid --net --fork --kill-child --propagation private sh -euc '
    ip link set lo up
    mount -t proc proc "$0/proc"
    mount --rbind /dev "$0/dev"
    mount -t tmpfs tmpfs "$0/run"
    # A disk that is too small.
    mount -t tmpfs -o size=3M tmpfs "$0/full"
    exec chroot "$0" /test/test_in_root.sh' "$root"
  rm -rf "$root"
  trap - EXIT
}

image() { buildah --root="$kept/images" --runroot="$kept/images-run" --storage-driver=vfs "$@"; }

test_image() {
  made base ca-certificates adduser debconf
  local base=docker.io/library/debian:bookworm-slim id deb container
  if [ -z "$(image images --quiet "$base" 2>/dev/null)" ]; then
    # The root takes the place of the image of that name, which may not be within reach.
    id="$(image from scratch)"
    image add --quiet "$id" "$kept/base.tar" >/dev/null
    image commit --quiet "$id" "$base" >/dev/null
    image rm "$id" >/dev/null
  fi
  deb="$(cd "$out/docker" && ls cohort-server_*.deb)"
  image build --quiet --format docker --isolation=chroot --pull-never --build-arg PACKAGE="$deb" --tag cohort "$out/docker" >/dev/null
  container="$(image from --pull-never cohort)"
  local root
  root="$(image mount "$container")"
  cp "$here/test_in_image.sh" "$root/test.sh"
  echo 'CREATE TABLE scripted.t (a INT);' | gzip >"$root/docker-entrypoint-initdb.d/2.sql.gz"
  echo 'CREATE DATABASE scripted;' >"$root/docker-entrypoint-initdb.d/1.sql"
  unshare --mount --pid --net --fork --kill-child --propagation private sh -euc '
    ip link set lo up
    mount -t proc proc "$0/proc"
    mount --rbind /dev "$0/dev"
    exec chroot --userspec=cohort:cohort "$0" /test.sh' "$root"
  image umount "$container" >/dev/null
  image rm "$container" >/dev/null
}

case "$part" in
package) test_package ;;
image) test_image ;;
all)
  # One after the other: a list of commands would hide what fails in the first.
  test_package
  test_image
  ;;
*) echo "usage: $0 OUT KEPT [package|image]" >&2; exit 2 ;;
esac
