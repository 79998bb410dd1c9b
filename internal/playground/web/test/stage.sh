#!/bin/sh
# Runs a command in a copy of the page's sources in another folder, with the packages of
# QTYPE_PLAYGROUND_MODULES, a folder node_modules. Nothing is written to the sources.
set -eu
cd "$(dirname "$0")/.."
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -R src test dist build.mjs package.json package-lock.json .npmrc tsconfig.json playwright.config.ts "$copy"
ln -s "$QTYPE_PLAYGROUND_MODULES" "$copy/node_modules"
cd "$copy"
PATH="$copy/node_modules/.bin:$PATH"
export PATH QTYPE_PLAYGROUND_RESULTS="$copy/results"
"$@"
