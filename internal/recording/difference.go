package recording

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
)

// maxDifference is the maximum number of lines of a difference.
const maxDifference = 60

// difference returns the lines that differ between two requests, with some lines around
// them, and their number. old is nil for a request that is only shown.
func difference(old, now []byte) (text string, changes int) {
	if old == nil {
		return limitLines(prefixed("+", lines(now))), 0
	}
	var shown []string
	for line := range strings.SplitSeq(string(diff.Diff("recording", []byte(lines(old)), "request", []byte(lines(now)))), "\n") {
		switch {
		case line == "", strings.HasPrefix(line, "diff "), strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "), strings.HasPrefix(line, `\ `):
			continue
		case strings.HasPrefix(line, "@@"):
			line = "…"
		case line[0] != ' ':
			changes++
		}
		shown = append(shown, line)
	}
	return limitLines(shown), changes
}

func prefixed(prefix, text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		all = append(all, prefix+strings.TrimSuffix(line, "\n"))
	}
	return all
}

func limitLines(all []string) string {
	if len(all) > maxDifference {
		all = append(all[:maxDifference:maxDifference], fmt.Sprintf("… and %d more lines", len(all)-maxDifference))
	}
	return strings.Join(all, "\n")
}

// lines returns a request for readers: one line for each value, and one for each line of
// a text.
func lines(request []byte) string {
	d := json.NewDecoder(bytes.NewReader(request))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return string(request) + "\n"
	}
	var b strings.Builder
	writeLines(&b, "", "", v)
	return b.String()
}

func writeLines(b *strings.Builder, indent, label string, v any) {
	switch v := v.(type) {
	case map[string]any:
		if label != "" {
			fmt.Fprintf(b, "%s%s\n", indent, label)
			indent += "  "
		}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			writeLines(b, indent, k+":", v[k])
		}
	case []any:
		fmt.Fprintf(b, "%s%s\n", indent, label)
		for i, item := range v {
			writeLines(b, indent+"  ", fmt.Sprintf("%d.", i+1), item)
		}
	case string:
		if !strings.Contains(v, "\n") {
			fmt.Fprintf(b, "%s%s %s\n", indent, label, v)
			return
		}
		fmt.Fprintf(b, "%s%s\n", indent, label)
		for line := range strings.SplitSeq(v, "\n") {
			fmt.Fprintf(b, "%s  %s\n", indent, line)
		}
	default:
		text, _ := json.Marshal(v)
		fmt.Fprintf(b, "%s%s %s\n", indent, label, text)
	}
}
