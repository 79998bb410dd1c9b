#!/bin/sh
# Builds the page in the current folder, a copy, and fails if the result differs from the
# committed dist.
set -eu
mv dist committed
npm run build
if ! diff -r committed dist; then
	echo "dist is not the build of src: run \"npm run build\" and commit dist" >&2
	exit 1
fi
echo "dist is the build of src"
