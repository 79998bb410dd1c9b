#!/bin/sh
# Runs a command in a copy of the web interface in another folder:
#
#   sh test/stage.sh npx vitest run
#
# QTYPE_UI_MODULES is the folder node_modules with the packages of package-lock.json, by
# default that of the sources. Nothing is written to the sources, and the build cannot
# depend on where it is made.
set -eu
cd "$(dirname "$0")/.."
modules=${QTYPE_UI_MODULES:-$PWD/node_modules}
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -R src public test dist index.html package.json package-lock.json .npmrc tsconfig.json vite.config.ts playwright.config.ts "$copy"
ln -s "$modules" "$copy/node_modules"
cd "$copy"
PATH="$copy/node_modules/.bin:$PATH"
export PATH QTYPE_UI_RESULTS="$copy/results"
"$@"
