#!/usr/bin/env bash
# Builds llama-server with the Vulkan backend from llama.cpp's source, for this machine, into bin/ beside this script.
set -euo pipefail

usage() {
    cat <<'END'
Usage: build_vulkan.sh [--check]

  --check   only looks whether everything needed is there

Settings, by environment:
  LLAMA_CPP_REF      tag or commit to build; pin it for repeatable builds  (the newest bNNNN tag)
  LLAMA_CPP_URL      repository                               (https://github.com/ggml-org/llama.cpp)
  LLAMA_CPP_DIR      folder of source and build               (~/.cache/ducklm/llama.cpp)
  LLAMA_BIN_DIR      where llama-server goes                  (bin beside this script; DuckLM looks there first)
  LLAMA_BACKEND      vulkan or cpu                            (vulkan)
  LLAMA_JOBS         compilers at once                        (as cores and memory allow)

It needs the network, about 2 GB of disk and, by the machine, 5 to 30 minutes.
END
}

fail() {
    echo "build_vulkan.sh: $*" >&2
    exit 1
}

check_only=
case ${1:-} in
-h | --help)
    usage
    exit 0
    ;;
--check) check_only=yes ;;
"") ;;
*)
    usage >&2
    exit 2
    ;;
esac

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
backend=${LLAMA_BACKEND:-vulkan}
url=${LLAMA_CPP_URL:-https://github.com/ggml-org/llama.cpp}
source=${LLAMA_CPP_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/ducklm/llama.cpp}
bin=${LLAMA_BIN_DIR:-$here/bin}
[[ $backend == vulkan || $backend == cpu ]] || fail "LLAMA_BACKEND must be vulkan or cpu, not $backend"

missing=()
need_program() { # PROGRAM, and Debian's package
    command -v "$1" >/dev/null || missing+=("the program $1 (Debian: $2)")
}
need_header() { # HEADER, and Debian's package
    echo "#include <$1>" | "${CXX:-c++}" -E -x c++ - >/dev/null 2>&1 || missing+=("the header $1 (Debian: $2)")
}
need_program git git
need_program cmake cmake
need_program "${CXX:-c++}" build-essential
need_program make build-essential
if command -v "${CXX:-c++}" >/dev/null; then
    need_header openssl/ssl.h libssl-dev # for models by OWNER/REPO over https
    if [[ $backend == vulkan ]]; then
        need_header vulkan/vulkan.h libvulkan-dev
        need_header spirv/unified1/spirv.hpp spirv-headers
    fi
fi
if [[ $backend == vulkan ]]; then need_program glslc glslc; fi
if ((${#missing[@]})); then
    echo "These are needed to build and are not here:" >&2
    printf '  %s\n' "${missing[@]}" >&2
    echo "On Debian and Ubuntu: sudo apt install git cmake build-essential libssl-dev libvulkan-dev spirv-headers glslc" >&2
    exit 1
fi
if [[ $backend == vulkan ]] && command -v vulkaninfo >/dev/null && ! vulkaninfo --summary >/dev/null 2>&1; then
    echo "note: no Vulkan driver answers here (Debian: mesa-vulkan-drivers); it builds, but will run on the CPU" >&2
fi
if [[ -n $check_only ]]; then
    echo "everything is there"
    exit 0
fi

ref=${LLAMA_CPP_REF:-}
if [[ -z $ref ]]; then
    ref=$(git ls-remote --tags --refs --sort=-v:refname "$url" 'b[0-9]*' | sed -n '1s|.*refs/tags/||p') ||
        fail "$url does not answer: check the network, or set LLAMA_CPP_URL"
    [[ -n $ref ]] || fail "$url has no bNNNN tag: set LLAMA_CPP_REF"
fi
echo "building llama.cpp $ref ($backend) in $source"
if [[ ! -d $source/.git ]]; then
    mkdir -p "$source"
    git init -q "$source"
    git -C "$source" remote add origin "$url"
fi
git -C "$source" remote set-url origin "$url"
git -C "$source" fetch -q --depth 1 origin "$ref" || fail "$ref cannot be fetched from $url"
git -C "$source" checkout -q --detach FETCH_HEAD

# a compiler of the larger files takes up to 2 GB; a plain -j would start one for every file at once
cores=$(getconf _NPROCESSORS_ONLN)
memory_gb=$(awk '/MemAvailable/ {print int($2 / 1048576)}' /proc/meminfo 2>/dev/null || echo 8)
jobs=${LLAMA_JOBS:-$((memory_gb / 2 < cores ? memory_gb / 2 : cores))}
((jobs > 0)) || jobs=1

vulkan=OFF
if [[ $backend == vulkan ]]; then vulkan=ON; fi
cmake -S "$source" -B "$source/build-$backend" -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF \
    -DGGML_VULKAN=$vulkan -DGGML_NATIVE=ON -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_SERVER=ON
cmake --build "$source/build-$backend" --config Release --target llama-server --parallel "$jobs"

mkdir -p "$bin"
# a rename, so that a running server keeps its file and a broken build replaces nothing
cp "$source/build-$backend/bin/llama-server" "$bin/.llama-server.new"
"$bin/.llama-server.new" --version || fail "the new llama-server does not run"
mv -f "$bin/.llama-server.new" "$bin/llama-server"
echo "done: $bin/llama-server. Next: LLAMA_MODEL=… $here/start_main.sh start"
