package wire

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"
)

// TextList converts a single text, such as that of the parameter stop, to a list.
func TextList(raw json.RawMessage) json.RawMessage {
	if strings.HasPrefix(string(raw), "[") {
		return raw
	}
	return slices.Concat(json.RawMessage("["), raw, json.RawMessage("]"))
}

// Camel converts top_p to topP.
func Camel(name string) string {
	var b strings.Builder
	up := false
	for _, r := range name {
		switch {
		case r == '_':
			up = b.Len() > 0
			continue
		case up:
			r, up = unicode.ToUpper(r), false
		}
		b.WriteRune(r)
	}
	return b.String()
}
