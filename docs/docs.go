// Package docs embeds the documentation, so that the program can show and search it
// without a network.
package docs

import "embed"

// Files are the pages, by their paths in this folder.
//
//go:embed *.md */*.md
var Files embed.FS
