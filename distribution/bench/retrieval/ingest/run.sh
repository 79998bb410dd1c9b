#!/usr/bin/env bash
# Compares an ingest with LlamaIndex: the source of Go's standard library, as texts of
# 107,729 chunks, is read, split, embedded by a mock and stored. The second run of
# qtype finds a filled index. FILES sets the number of files.
#
#   run.sh QTYPE PYTHON   the command, and a Python with llama-index-core and its file readers
set -euo pipefail
qtype=$(realpath "$1") python=$2
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/texts"
# SentenceSplitter reads them as prose; files are numbered because names repeat.
n=0
while IFS= read -r file; do
  n=$((n + 1))
  cp "$file" "$work/texts/$n.txt"
done < <(find "$(go env GOROOT)/src" -name '*.go' -size -200k -not -path '*/testdata/*' | sort | head -"${FILES:-10000}")
du -sh "$work/texts"

# measure NAME COMMAND… prints the times and the maximum memory of a command.
measure() {
  local name=$1
  shift
  echo "$name"
  /usr/bin/time -f '  %e s elapsed, %U s user, %S s system, %M KB' "$@"
}

export INGEST_INDEX=$work/notes.db
fill() { measure "$1" "$qtype" run app.qtype.yaml -i "{\"input_dir\": \"$work/texts\"}" -o "$work/out.jsonl" --ephemeral; }
fill qtype
measure LlamaIndex "$python" llamaindex.py "$work/texts" "$work/store"
fill "qtype, again"
du -sh "$work/notes.db" "$work/store"
