package cleanup

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
)

// ParseAge reads a positive duration, also in days: 30d. The empty text is 0.
func ParseAge(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	given := text
	if days, ok := strings.CutSuffix(text, "d"); ok && strings.Trim(days, "0123456789.") == "" {
		given = days + "h"
	}
	age, err := time.ParseDuration(given)
	if err == nil && given != text {
		if age > math.MaxInt64/24 { // would be a short time
			return 0, errors.New("expected at most 292 years, which are 106751d")
		}
		age *= 24
	}
	if err != nil || age <= 0 {
		return 0, errors.New("expected a duration such as 12h or 30d")
	}
	return age, nil
}

// Write writes what would be removed: a line for each item, and a summary.
func (p *Plan) Write(w io.Writer) error {
	var b strings.Builder
	var bytes int64
	removed := 0
	for _, item := range p.Items {
		note := "  in use: kept"
		if !item.InUse {
			note = ""
			removed++
			bytes += item.Bytes
		}
		what := cmp.Or(item.ID, filepath.ToSlash(item.Where))
		if item.ID != "" {
			what += " in " + filepath.ToSlash(item.Where)
		}
		used := ""
		if !item.Used.IsZero() {
			used = textfmt.Ago(p.config.Now.Sub(item.Used))
		}
		fmt.Fprintf(&b, "%-9s  %12s  %-14s  %s%s\n", item.Kind, item.size(), used, terminal.Clean(what), note)
	}
	fmt.Fprintf(&b, "%s would be removed", textfmt.Count(removed, "item"))
	if bytes > 0 {
		fmt.Fprintf(&b, ", %s", textfmt.Bytes(bytes))
	}
	b.WriteByte('\n')
	_, err := io.WriteString(w, b.String())
	return err
}

// size returns the size of an item, or what it counts.
func (i *Item) size() string {
	switch i.Kind {
	case Memories:
		return textfmt.Count(i.Count, "message")
	case Caches:
		return textfmt.Count(i.Count, "result")
	default:
		return textfmt.Bytes(i.Bytes)
	}
}

// WriteRemoved writes what was removed, a line for each kind.
func WriteRemoved(w io.Writer, removed []Removed) error {
	if len(removed) == 0 {
		_, err := fmt.Fprintln(w, "there is nothing to remove")
		return err
	}
	nouns := map[Kind]string{Memories: "session", Caches: "result", Journals: "journal", Temporary: "temporary file", Traces: "trace"}
	for _, r := range removed {
		if _, err := fmt.Fprintf(w, "%s removed\n", textfmt.Count(r.Items, nouns[r.Kind])); err != nil {
			return err
		}
	}
	return nil
}
