package lsptest

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Cursor is a character that occurs in no document; the server inserts it to
// parse a text with a value at the cursor.
const Cursor = "\ue000"

// DrawBrokenText draws one of the documents or arbitrary text, and replaces a
// part of it by what a user might be typing.
func DrawBrokenText(t *rapid.T, documents []string) string {
	text := rapid.SampledFrom(documents).Draw(t, "document")
	if rapid.Bool().Draw(t, "arbitrary") {
		text = rapid.StringOfN(rapid.SampledFrom([]rune("ab: -\n{}[],\"'#|>&*!\t é😀\ufeff$?%")), 0, 80, -1).Draw(t, "text")
	}
	from := rapid.IntRange(0, len(text)).Draw(t, "from")
	to := rapid.IntRange(from, len(text)).Draw(t, "to")
	return text[:from] + rapid.SampledFrom([]string{"", Cursor, "{", "[", "\"", "'", "- ", "x: ", "\n", "|"}).Draw(t, "typed") + text[to:]
}

// Texts returns the texts of [Documents].
func Texts(t testing.TB) []string {
	t.Helper()
	documents := Documents(t)
	var texts []string
	for _, path := range slices.Sorted(maps.Keys(documents)) {
		texts = append(texts, documents[path])
	}
	return texts
}

// Frame returns a message with its header.
func Frame(body string) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body) }
