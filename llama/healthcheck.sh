#!/usr/bin/env bash
# Asks a llama-server how it is. Exit code: 0 ready, 1 loading, 2 nothing answers, 3 the key is refused.
set -euo pipefail

if [[ ${1:-} == -h || ${1:-} == --help ]]; then
    cat <<'END'
Usage: healthcheck.sh [URL]

URL: by default $DUCKLM_LLAMA_URL, else http://$LLAMA_HOST:$LLAMA_PORT (127.0.0.1:8080). A key is taken from LLAMA_API_KEY.
Exit code: 0 ready, 1 loading the model, 2 nothing answers, 3 the key is refused. LLAMA_QUIET=1 prints nothing.
END
    exit 0
fi

url=${1:-${DUCKLM_LLAMA_URL:-http://${LLAMA_HOST:-127.0.0.1}:${LLAMA_PORT:-8080}}}
url=${url%/}
url=${url%/v1}

say() {
    [[ -n ${LLAMA_QUIET:-} ]] || echo "$*"
}

# By a file handle, not by an argument: the key must not show in the list of processes.
ask() {
    local config=""
    if [[ -n ${LLAMA_API_KEY:-} ]]; then config="header = \"Authorization: Bearer $LLAMA_API_KEY\""; fi
    curl --silent --noproxy '*' --max-time 5 --config <(printf '%s\n' "$config") "$@"
}

code=$(ask --output /dev/null --write-out '%{http_code}' "$url/health") || code=000
case $code in
200) ;;
503)
    say "loading the model: $url"
    exit 1
    ;;
*)
    say "nothing usable answers at $url (status $code)"
    exit 2
    ;;
esac

props=$(ask --write-out '\n%{http_code}' "$url/props") || props=$'\n000'
code=${props##*$'\n'}
if [[ $code == 401 || $code == 403 ]]; then
    say "ready, but it wants another key: $url (set LLAMA_API_KEY)"
    exit 3
fi
field() {
    grep -oE "\"$1\": *[^,}]+" <<<"$props" | head -n 1 | cut -d: -f2- | tr -d '" '
}
slots=$(field total_slots || true)
model=$(field model_alias || true)
context=$(grep -oE '"n_ctx": *[0-9]+' <<<"$props" | head -n 1 | tr -dc 0-9 || true)
say "ready: $url, model ${model:-unknown}, ${slots:-?} slots of ${context:-?} tokens"
