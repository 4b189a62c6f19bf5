#!/usr/bin/env bash
# Makes sure that WebGPU finds an adapter: usage tools/ensure_adapter.sh PYTHON (one that has nybble).
# Where none is found and apt can be used, installs Mesa's software Vulkan driver. Without an
# adapter nybble still runs, on its host reference: so this never fails, it only says so.
set -uo pipefail
python=${1:?usage: ensure_adapter.sh PYTHON}
none=3 # the probe's exit status for no adapter

as_root=()
may_install() {
  command -v apt-get >/dev/null || return 1
  [ "$(id -u)" = 0 ] && return 0
  as_root=(sudo -n)
  command -v sudo >/dev/null && sudo -n true 2>/dev/null
}

output=$("$python" -m nybble.doctor.probe 2>&1)
status=$?
[ $status = 0 ] && exit 0
if [ $status != $none ]; then
  echo "The search for WebGPU adapters ended with status $status: $(tail -n 1 <<<"$output")" >&2
  exit 0
fi
if may_install; then
  echo "No Vulkan adapter found: installing libvulkan1 and mesa-vulkan-drivers (a software one)." >&2
  export DEBIAN_FRONTEND=noninteractive
  log=$({ "${as_root[@]}" apt-get update -qq && "${as_root[@]}" apt-get install -y -qq \
    --no-install-recommends libvulkan1 mesa-vulkan-drivers; } 2>&1) || echo "$log" >&2
  "$python" -m nybble.doctor.probe >/dev/null 2>&1 && exit 0
fi
echo "No WebGPU adapter was found, so nybble will run on its host reference: install your GPU's" \
  "Vulkan driver, or on Debian and Ubuntu 'apt-get install libvulkan1 mesa-vulkan-drivers';" \
  "'nybble doctor' says more." >&2
