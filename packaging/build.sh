#!/usr/bin/env bash
# Packs the programs of one profile: a .deb, an archive that runs from any directory, a list of components (SBOM) and
# the files of a container image. Called by `./x package`, which sets CARGO_TARGET_DIR and installs the tools.
#
#   packaging/build.sh PROFILE OUT        PROFILE: release or dev
set -euo pipefail
cd "$(dirname "$0")/.."

profile="$1" out="$2"
folder="$CARGO_TARGET_DIR/$([ "$profile" = dev ] && echo debug || echo "$profile")"
tools="$CARGO_TARGET_DIR/tools/bin"
staged="$folder/package"
version="$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)"
machine="$(uname -m)"

# Text without requests for `man`.
preformatted() { sed -e 's/\\/\\e/g' -e 's/-/\\-/g' -e "s/^\([.']\)/\\\\\&\1/"; }

bench_man_page() {
  cat <<TEXT
.TH COHORT\-BENCH 1 "" "Cohort $version" "User commands"
.SH NAME
cohort\-bench \- measure Cohort side by side with other servers
.SH SYNOPSIS
.nf
TEXT
  "$folder/cohort-bench" --help | preformatted
  printf '.fi\n.SH SEE ALSO\ncohortd(8)\n'
}

rm -rf "$staged" "$out"
mkdir -p "$staged/man" "$staged/completions" "$out"
"$folder/cohortd" --print-man-page | gzip -9n >"$staged/man/cohortd.8.gz"
bench_man_page | gzip -9n >"$staged/man/cohort-bench.1.gz"
"$folder/cohort-backup" man-page | gzip -9n >"$staged/man/cohort-backup.1.gz"
for shell in bash fish zsh; do
  "$folder/cohortd" --print-completions="$shell" >"$staged/completions/$shell"
  "$folder/cohort-backup" completions "$shell" >"$staged/completions/cohort-backup.$shell"
done
"$tools/cargo-sbom" sbom --cargo-package cohort-server --output-format cyclone_dx_json_1_6 >"$staged/sbom.cdx.json"
cp "$staged/sbom.cdx.json" "$out/cohort-$version.cdx.json"

PATH="$tools:$PATH" cargo deb --no-build --locked --profile "$profile" -p cohort-server --output "$out/" >/dev/null
deb="$(cd "$out" && ls cohort-server_*.deb)"

# The archive: programs find nothing by their own place, so that any directory will do.
name="cohort-$version-linux-$machine"
tree="$staged/$name"
mkdir -p "$tree"/{bin,etc,share/man/man1,share/man/man8,share/completions}
install -m 755 "$folder/cohortd" "$folder/cohort-bench" "$folder/cohort-backup" "$tree/bin/"
strip "$tree"/bin/*
"$folder/cohortd" --print-sample-file >"$tree/etc/cohort.cnf"
cp "$staged/man/cohortd.8.gz" "$tree/share/man/man8/"
cp "$staged/man/cohort-bench.1.gz" "$staged/man/cohort-backup.1.gz" "$tree/share/man/man1/"
cp "$staged"/completions/* "$tree/share/completions/"
cp README.md CHANGELOG.md LICENSE NOTICE "$staged/sbom.cdx.json" "$tree/"
tar --directory="$staged" --owner=0 --group=0 --sort=name --zstd -cf "$out/$name.tar.zst" "$name"
rm -rf "$tree"

# The context of an image: docker build --build-arg PACKAGE=... docker/
mkdir "$out/docker"
cp packaging/docker/* "$out/docker/"
ln "$out/$deb" "$out/docker/$deb"

(cd "$out" && sha256sum -- *.deb *.tar.zst *.json >SHA256SUMS && ls -l --time-style=+ -- *.deb *.tar.zst *.json)
