#!/usr/bin/env bash
# Unpacks a second software Vulkan driver beside the installed one and prints the line that selects it:
#     eval "$(tools/driver.sh mesa25 .cache/drivers)"          lavapipe of Mesa 25, from bookworm-backports
#     eval "$(tools/driver.sh swiftshader .cache/drivers)"     SwiftShader, from Debian's chromium-common
# For Debian 12 with apt; nothing is installed. The mirror is that of this machine's apt sources.
set -euo pipefail
name=${1:?usage: driver.sh mesa25|swiftshader DIR}
folder=$(mkdir -p "${2:?usage: driver.sh mesa25|swiftshader DIR}/$name" && cd "$2/$name" && pwd)
icd=$folder/icd.json

sources() {
  cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | grep -oE 'https?://[^ ]+/debian/?( |$)' | head -n 1 | tr -d ' '
}

fetch() { # fetch PACKAGE [SUITE]: download and unpack into the folder
  local state
  state=$(mktemp -d)
  mkdir -p "$state/partial"
  local options=()
  if [ -n "${2:-}" ]; then
    local mirror
    mirror=$(sources)
    : "${mirror:?no Debian mirror in the apt sources}"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $2 main" >"$state/list"
    options=(-oDir::Etc::sourcelist="$state/list" -oDir::Etc::sourceparts=-)
  fi
  options+=(-oDir::State::Lists="$state" -oAPT::Get::List-Cleanup=0)
  apt-get "${options[@]}" update -qq >&2
  (cd "$state" && apt-get "${options[@]}" download -qq "$1" >&2 && dpkg-deb -x "$1"_*.deb "$folder")
  rm -rf "$state"
}

if [ ! -f "$icd" ]; then
  case $name in
    mesa25) fetch mesa-vulkan-drivers bookworm-backports; library=libvulkan_lvp.so; found='lvp_icd*.json' ;;
    swiftshader) fetch chromium-common; library=libvk_swiftshader.so; found='vk_swiftshader_icd.json' ;;
    *) echo "unknown driver $name: mesa25 or swiftshader" >&2; exit 2 ;;
  esac
  library=$(find "$folder" -name $library | head -n 1)
  sed "s#\"library_path\": *\"[^\"]*\"#\"library_path\": \"$library\"#" \
    "$(find "$folder" -name "$found" | head -n 1)" >"$icd"
fi
echo "export VK_DRIVER_FILES=$icd XDG_RUNTIME_DIR=${XDG_RUNTIME_DIR:-/tmp}"
