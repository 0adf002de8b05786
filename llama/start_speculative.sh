#!/usr/bin/env bash
# EXPERIMENTAL: start_main.sh with speculative decoding. Replies get faster or slower; only a measurement tells.
set -euo pipefail

usage() {
    cat <<'END'
Usage: start_speculative.sh ngram|mtp|draft [start|restart] [-- LLAMA-SERVER-FLAGS…]

  ngram   guesses from what was said before: no further model, good where text repeats (code, quoted files)
  mtp     the model's own prediction heads (a GGUF that has them: some Qwen3.5/3.6, GLM, DeepSeek)
  draft   a small model of the same family guesses; needs LLAMA_DRAFT_MODEL

Settings, besides those of start_main.sh:
  LLAMA_DRAFT_MODEL       GGUF file of the small model
  LLAMA_DRAFT_MAX         tokens guessed at once, mtp and draft            (3)
  LLAMA_DRAFT_GPU_LAYERS  layers of the small model on the GPU             (auto)
  LLAMA_SPEC_TYPE         the server's own --spec-type list, instead of the choice above

Guessing never changes what is said, only how fast. Look at the share of accepted guesses in
  curl -s http://127.0.0.1:8080/metrics | grep spec_decode
and compare tokens per second with and without. On a GPU that is short of memory, guessing usually costs more than
it gains. Stop it with start_main.sh stop.
END
}

fail() {
    echo "start_speculative.sh: $*" >&2
    exit 1
}

case ${1:---help} in
-h | --help)
    usage
    exit 0
    ;;
ngram) types=ngram-mod ;;
mtp) types=draft-mtp ;;
draft) types=draft-simple ;;
*)
    usage >&2
    exit 2
    ;;
esac
kind=$1
shift
command=start
if [[ ${1:-} == start || ${1:-} == restart ]]; then
    command=$1
    shift
fi
if [[ ${1:-} == -- ]]; then
    shift
elif (($#)); then
    fail "unknown argument $1 (flags for llama-server go after --)"
fi

flags=(--spec-type "${LLAMA_SPEC_TYPE:-$types}")
if [[ $kind != ngram ]]; then flags+=(--spec-draft-n-max "${LLAMA_DRAFT_MAX:-3}"); fi
if [[ $kind == draft ]]; then
    [[ -f ${LLAMA_DRAFT_MODEL:-} ]] || fail "set LLAMA_DRAFT_MODEL to the GGUF file of a small model of the same family"
    flags+=(--spec-draft-model "$LLAMA_DRAFT_MODEL" --spec-draft-ngl "${LLAMA_DRAFT_GPU_LAYERS:-auto}")
fi
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
exec "$here/start_main.sh" "$command" -- "${flags[@]}" "$@"
