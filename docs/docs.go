// Package docs embeds the documentation, so that the program can show and search it
// without a network.
package docs

import "embed"

// Files are the pages for users, by their paths in this folder. Decision records are for those who
// change the program, and not part of it.
//
//go:embed *.md concepts/*.md guides/*.md howto/*.md reference/*.md start/*.md
var Files embed.FS
