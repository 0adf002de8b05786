#!/usr/bin/env bash
# Runs a llama-server of your own, with the flags DuckLM profits from. `--help` tells all.
set -euo pipefail

usage() {
    cat <<'END'
Usage: start_main.sh start|stop|restart|status|logs [-- LLAMA-SERVER-FLAGS…]

  start     starts the server in the background and waits until the model is loaded
  stop      ends it (kindly, after 15 s not)
  restart   stop, then start
  status    whether it runs and is ready (exit code as of healthcheck.sh)
  logs      shows the log and follows it

Settings, by environment:
  LLAMA_MODEL            GGUF file (the first part of a split one), or OWNER/REPO:QUANT to download   (required)
  LLAMA_PORT             port                                                     (8080)
  LLAMA_HOST             address; leave it on this machine                        (127.0.0.1)
  LLAMA_API_KEY          key that clients must send; DuckLM: DUCKLM_LLAMA_API_KEY (none)
  LLAMA_CTX              context tokens of EACH slot                              (32768)
  LLAMA_SLOTS            conversations kept at once                               (2)
  LLAMA_GPU_LAYERS       layers on the GPU: a number, auto or all                 (auto)
  LLAMA_CPU_MOE          experts of so many layers stay on the CPU (--n-cpu-moe)  (none)
  LLAMA_CTX_CHECKPOINTS  points a slot can go back to (hybrid and sliding-window) (32)
  LLAMA_CHECKPOINT_STEP  least distance of two of them, tokens                    (2048)
  LLAMA_CACHE_RAM        MiB of memory for caches of conversations without a slot (8192)
  LLAMA_CACHE_TYPE_K     type of the K cache: f16, q8_0 …                         (f16)
  LLAMA_CACHE_TYPE_V     type of the V cache; below f16 it needs flash attention  (f16)
  LLAMA_FLASH_ATTN       on, off or auto                                          (auto)
  LLAMA_THREADS          CPU threads                                              (its choice)
  LLAMA_SERVER           the program                       (bin/llama-server beside this script, else PATH)
  LLAMA_STATE            folder for log, pid file and saved slots                 (~/.local/share/ducklm/llama)
  LLAMA_WAIT             seconds to wait for the model                            (900)

Then: DUCKLM_LLAMA_URL=http://127.0.0.1:8080 ducklm up
END
}

fail() {
    echo "start_main.sh: $*" >&2
    exit 1
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
host=${LLAMA_HOST:-127.0.0.1}
port=${LLAMA_PORT:-8080}
url=http://$host:$port
slots=${LLAMA_SLOTS:-2}
state=${LLAMA_STATE:-${XDG_DATA_HOME:-$HOME/.local/share}/ducklm/llama}
pid_file=$state/llama-server-$port.pid
log=$state/llama-server-$port.log

find_server() {
    if [[ -n ${LLAMA_SERVER:-} ]]; then
        command -v "$LLAMA_SERVER" || fail "LLAMA_SERVER=$LLAMA_SERVER is no program"
    elif [[ -x $here/bin/llama-server ]]; then
        echo "$here/bin/llama-server"
    else
        command -v llama-server ||
            fail "no llama-server: build one with build_vulkan.sh, put one on PATH, or set LLAMA_SERVER"
    fi
}

# The pid, if that process is still the server that was started. A number alone proves nothing after a reboot.
running() {
    local pid
    [[ -r $pid_file ]] || return 1
    pid=$(<"$pid_file")
    [[ $pid =~ ^[0-9]+$ ]] && ps -p "$pid" -o args= 2>/dev/null | grep -qE -- "--port $port( |\$)" && echo "$pid"
}

# Adds a flag with its value if this build knows it: builds differ, and an unknown flag ends the server.
add() {
    if grep -qE -- "(^|[ ,])$1([ ,]|$)" <<<"$known"; then
        args+=("$@")
    else
        echo "note: this llama-server has no $1, it goes without" >&2
    fi
}

build_args() {
    local server=$1 model=${LLAMA_MODEL:-} ctx=${LLAMA_CTX:-32768}
    [[ -n $model ]] || fail "set LLAMA_MODEL to a GGUF file or to OWNER/REPO:QUANT"
    [[ $ctx =~ ^[0-9]+$ && $slots =~ ^[1-9][0-9]*$ && $port =~ ^[0-9]+$ ]] ||
        fail "LLAMA_CTX, LLAMA_SLOTS and LLAMA_PORT must be numbers"
    known=$("$server" --help 2>&1) || fail "$server does not run: ${known:0:300}"
    if [[ -f $model ]]; then
        [[ $(head -c 4 "$model") == GGUF ]] || fail "$model is no GGUF file"
        args=(--model "$model")
    elif [[ $model == *.gguf || $model != */* ]]; then
        fail "the model file $model does not exist"
    else
        args=(--hf-repo "$model")
    fi
    add --alias "${model##*/}" # else the path of the file is the model's name
    args+=(--host "$host" --port "$port" --ctx-size $((ctx * slots)) --parallel "$slots")
    add --no-kv-unified # each slot keeps its own share: one long conversation must not take the other's
    add --jinja
    add --metrics
    add --slot-save-path "$state/slots"
    add --cors-origins "$url" # a build that is told nothing lets every web page in
    add --flash-attn "${LLAMA_FLASH_ATTN:-auto}"
    add --cache-ram "${LLAMA_CACHE_RAM:-8192}"
    add --ctx-checkpoints "${LLAMA_CTX_CHECKPOINTS:-32}"
    add --checkpoint-min-step "${LLAMA_CHECKPOINT_STEP:-2048}"
    if [[ -n ${LLAMA_GPU_LAYERS:-} ]]; then add --n-gpu-layers "$LLAMA_GPU_LAYERS"; fi
    if [[ -n ${LLAMA_CPU_MOE:-} ]]; then add --n-cpu-moe "$LLAMA_CPU_MOE"; fi
    if [[ -n ${LLAMA_CACHE_TYPE_K:-} ]]; then add --cache-type-k "$LLAMA_CACHE_TYPE_K"; fi
    if [[ -n ${LLAMA_CACHE_TYPE_V:-} ]]; then add --cache-type-v "$LLAMA_CACHE_TYPE_V"; fi
    if [[ -n ${LLAMA_THREADS:-} ]]; then add --threads "$LLAMA_THREADS"; fi
    args+=("${extra[@]}")
}

start() {
    local server pid
    if pid=$(running); then
        echo "it runs already (pid $pid)"
        wait_ready "$pid"
        return
    fi
    command -v curl >/dev/null || fail "curl is needed to see whether the server is ready"
    # not in a substitution of its own line: fail must end this script
    server=$(find_server) || exit 1
    mkdir -p "$state/slots"
    chmod 700 "$state" "$state/slots" # saved slots hold what was said
    build_args "$server"
    if (exec 3<>"/dev/tcp/$host/$port") 2>/dev/null; then
        fail "something listens on $host:$port already: stop it, or set LLAMA_PORT"
    fi
    [[ ! -f $log ]] || mv -f "$log" "$log.1"
    # the key stays in the environment: a command line can be read by every user of this machine.
    # LLAMA_ARG_TOOLS and LLAMA_ARG_AGENT would give the server tools of its own, which nobody approves
    env -u LLAMA_ARG_TOOLS -u LLAMA_ARG_AGENT nohup "$server" "${args[@]}" </dev/null >"$log" 2>&1 &
    pid=$!
    echo "$pid" >"$pid_file"
    echo "started (pid $pid), log: $log"
    wait_ready "$pid"
}

wait_ready() {
    local pid=$1 deadline=$((SECONDS + ${LLAMA_WAIT:-900})) told=
    while ! LLAMA_QUIET=1 "$here/healthcheck.sh" "$url"; do
        if ! kill -0 "$pid" 2>/dev/null; then
            rm -f "$pid_file"
            echo "the server has ended. Its last words:" >&2
            tail -n 15 "$log" >&2
            explain >&2
            exit 1
        fi
        ((SECONDS < deadline)) || fail "still not ready after ${LLAMA_WAIT:-900} s; it goes on loading, see $log"
        if [[ -z $told ]]; then
            echo "waiting for the model…"
            told=yes
        fi
        sleep 0.5
    done
    "$here/healthcheck.sh" "$url"
}

explain() {
    if grep -qiE "out of ?memory|failed to allocate|OutOfDeviceMemory|bad_alloc" "$log"; then
        echo "→ not enough memory: lower LLAMA_CTX, LLAMA_SLOTS or LLAMA_GPU_LAYERS, raise LLAMA_CPU_MOE"
    elif grep -q "failed to load model" "$log"; then
        echo "→ the model cannot be loaded: damaged, too new for this build, or not to be downloaded from here"
    elif ! grep -q " E " "$log"; then
        echo "→ ended without an error of its own: perhaps killed for want of memory, or built for another processor"
    fi
}

stop() {
    local pid tries
    if ! pid=$(running); then
        rm -f "$pid_file"
        echo "it does not run"
        return
    fi
    kill -TERM "$pid"
    for ((tries = 0; tries < 150; tries++)); do
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.1
    done
    if kill -0 "$pid" 2>/dev/null; then kill -KILL "$pid"; fi
    rm -f "$pid_file"
    echo "stopped"
}

status() {
    local pid
    if pid=$(running); then echo "runs (pid $pid), log: $log"; else echo "not started by this script"; fi
    exec "$here/healthcheck.sh" "$url"
}

case ${1:---help} in
-h | --help)
    usage
    exit 0
    ;;
esac
command=$1
shift
extra=()
known=
args=()
if [[ ${1:-} == -- ]]; then
    shift
    extra=("$@")
elif (($#)); then
    fail "unknown argument $1 (flags for llama-server go after --)"
fi

case $command in
start) start ;;
stop) stop ;;
restart)
    stop
    start
    ;;
status) status ;;
logs)
    [[ -f $log ]] || fail "there is no log yet: $log"
    exec tail -n 100 -f "$log"
    ;;
*)
    usage >&2
    exit 2
    ;;
esac
