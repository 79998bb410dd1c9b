// Package web has the files of the playground page: the build of the scripts in src, which
// npm run build writes to dist. Commit dist after a change of src.
package web

import "embed"

// Files are the files, below dist.
//
//go:embed dist
var Files embed.FS
