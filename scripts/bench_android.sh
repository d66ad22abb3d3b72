#!/usr/bin/env bash
# Runs `plait bench` on a phone over adb and brings its figures and trace here.
#   scripts/bench_android.sh [--serial SERIAL] [--output FOLDER] MODEL... [-- BENCH_ARGUMENT...]
# MODEL: a zoo name, or a file of Plait's JSON (with its weights beside it). Needs adb, ANDROID_NDK_ROOT for the first build, and a phone that allows debugging.
set -euo pipefail
cd "$(dirname "$0")/.."
serial=() output=build/android-bench models=() arguments=()
while [ $# -gt 0 ]; do
  case $1 in
    -h|--help) sed -n '2,4s/^# //p' "$0"; exit 0 ;;
    --serial) serial=(-s "${2:?--serial needs a value}"); shift 2 ;;
    --output) output=${2:?--output needs a value}; shift 2 ;;
    --) shift; arguments=("$@"); break ;;
    -*) echo "scripts/bench_android.sh: unknown argument $1 (see --help)" >&2; exit 2 ;;
    *) models+=("$1"); shift ;;
  esac
done
[ ${#models[@]} -gt 0 ] || { echo "scripts/bench_android.sh: name a model (see --help)" >&2; exit 2; }
command -v adb >/dev/null || { echo "scripts/bench_android.sh: adb is not installed (Android's platform tools)" >&2; exit 1; }
phone() { adb "${serial[@]}" "$@"; }
phone get-state >/dev/null || { echo "scripts/bench_android.sh: no phone answers; see 'adb devices'" >&2; exit 1; }

if [ ! -x build/android/plait ]; then
  : "${ANDROID_NDK_ROOT:?set it to the NDK folder}"
  echo "plait: building for Android (log: build/android.log)"
  mkdir -p build
  { cmake --preset android -DPLAIT_TOOL=ON && cmake --build build/android --target plait_tool; } >build/android.log 2>&1 ||
    { grep -nE 'error|FAILED|CMake Error' build/android.log | head -n 40 >&2; exit 1; }
fi

there=/data/local/tmp/plait
phone shell mkdir -p "$there/cache"
phone push --sync build/android/plait "$there/" >/dev/null
mkdir -p "$output"
{
  phone shell getprop ro.product.model
  phone shell getprop ro.soc.model
  phone shell getprop ro.build.fingerprint
} >"$output/phone.txt"
for model in "${models[@]}"; do
  name=$(basename "$model" .json) target=$model
  if [ -e "$model" ]; then
    phone push --sync "$model" "$there/" >/dev/null
    [ ! -e "$model.weights" ] || phone push --sync "$model.weights" "$there/" >/dev/null
    target=$there/$(basename "$model")
  fi
  echo "plait: $name on $(head -n 1 "$output/phone.txt" | tr -d '\r')"
  # The vendor's OpenCL library is not on the search path of a shell program.
  phone shell "cd $there && LD_LIBRARY_PATH=/vendor/lib64:/system/vendor/lib64 ./plait bench '$target' --cache $there/cache --json $there/$name.json --trace $there/$name.trace.json ${arguments[*]:-}"
  phone pull "$there/$name.json" "$output/" >/dev/null
  phone pull "$there/$name.trace.json" "$output/" >/dev/null
done
echo "plait: figures and traces are in $output; traces open in ui.perfetto.dev"
