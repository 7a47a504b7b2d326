#!/usr/bin/env bash
# Makes every sound below assets/ again. Needs: apt-get install flite; cargo. The output is committed.
#
# Speech: flite, voice slt, 16 kHz, trimmed and levelled, coded as G.722 (64 kbit/s: the best sound for its size that
# every part of the program can decode). Beeps, silence and music: our own example programs of crates/codec.
set -euo pipefail
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

tools=${STROWGER_TOOLS:-}
if [ -z "$tools" ]; then
    cargo build -q --release --manifest-path ../Cargo.toml -p codec --examples
    tools=${CARGO_TARGET_DIR:-../target}/release/examples
fi

while IFS=$'\t' read -r name words; do
    case $name in '' | '#'*) continue ;; esac
    mkdir -p "sounds/en/$(dirname "$name")"
    flite -voice slt --setf duration_stretch=1.05 -t "$words" -o "$work/prompt.wav"
    "$tools/convert" "$work/prompt.wav" "sounds/en/$name.g722" 0.6
done <prompts.txt

"$tools/compose" .
du -sh sounds moh
