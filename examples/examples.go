// Package examples embeds the documents of the examples, so that the program can show
// and search them without a network.
package examples

import "embed"

// Files are the documents, by their paths in this folder. Their data files are not
// part of it.
//
//go:embed */*.yaml
var Files embed.FS
