package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
)

// The files that page writes, in the root of the repository.
const (
	pageFile    = "docs/benchmarks.md"
	pictureFile = "docs/images/benchmarks.svg"
)

// The table is between these lines of the page.
const (
	tableBegin = "<!-- begin: table of distribution/bench/compare -->\n"
	tableEnd   = "<!-- end -->\n"
)

// writePage writes the table and the picture of the page.
func writePage(root string) error {
	all, err := readFigures(filepath.Join(root, figuresFile))
	if err != nil {
		return err
	}
	page := filepath.Join(root, pageFile)
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	updated, err := all.updated(string(text))
	if err != nil {
		return err
	}
	if err := os.WriteFile(page, []byte(updated), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, pictureFile), []byte(all.picture()), 0o644)
}

// updated returns the text of the page with the current table.
func (all *figures) updated(page string) (string, error) {
	head, rest, begins := strings.Cut(page, tableBegin)
	_, tail, ends := strings.Cut(rest, tableEnd)
	if !begins || !ends {
		return "", fmt.Errorf("%s has no place for the table", pageFile)
	}
	return head + tableBegin + "\n" + all.table() + "\n" + tableEnd + tail, nil
}

// Sizes of the picture in pixels.
const (
	pictureWidth = 760
	labelWidth   = 250
	barHeight    = 16
	groupHeight  = 2*barHeight + 18
	maxRatio     = 128 // at the right border; the scale is logarithmic
	minRatio     = 0.5
)

// picture returns the ratios to the limits as bars.
func (all *figures) picture() string {
	var shown []*figure
	for _, f := range all.Workloads {
		if f.Limit != "" {
			shown = append(shown, f)
		}
	}
	height := 70 + groupHeight*len(shown)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-labelledby="t d" font-family="system-ui, sans-serif" font-size="13">
  <title id="t">CPU time in proportion to a hand-written program</title>
  <desc id="d">%s</desc>
  <style>
    text { fill: #1f2937 } .note { fill: #4b5563; font-size: 12px } .qtype { fill: #2563eb } .other { fill: #9ca3af } .limit { stroke: #16a34a; stroke-width: 2 }
    @media (prefers-color-scheme: dark) { text { fill: #e5e7eb } .note { fill: #9ca3af } .qtype { fill: #60a5fa } .other { fill: #6b7280 } }
  </style>
  <text x="20" y="26" font-weight="600">CPU time in proportion to a hand-written program; shorter is better</text>
`, pictureWidth, height, pictureWidth, height, description(shown))
	for i, f := range shown {
		y := 46 + i*groupHeight
		fmt.Fprintf(&b, `  <text x="20" y="%d">%s</text>`+"\n", y+barHeight+4, f.Short)
		bar(&b, y, "qtype", "qtype", f.ratio("qtype"))
		if f.Peer != nil {
			bar(&b, y+barHeight+2, "other", f.Peer.Name, f.ratio("qtype")*f.Peer.Times)
		}
	}
	fmt.Fprintf(&b, `  <line class="limit" x1="%d" y1="38" x2="%d" y2="%d"/>`+"\n", position(1), position(1), height-28)
	fmt.Fprintf(&b, `  <text class="note" x="%d" y="%d" text-anchor="middle">the hand-written program: 1</text>`+"\n</svg>\n", position(1), height-10)
	return b.String()
}

// bar draws one ratio.
func bar(b *strings.Builder, y int, class, name string, ratio float64) {
	x := position(ratio)
	fmt.Fprintf(b, `  <rect class="%s" x="%d" y="%d" width="%d" height="%d"/><text class="note" x="%d" y="%d">%s %s</text>`+"\n",
		class, labelWidth, y, x-labelWidth, barHeight, x+6, y+barHeight-3, number(ratio), name)
}

// position returns where a ratio is on the logarithmic scale.
func position(ratio float64) int {
	const room = pictureWidth - labelWidth - 150 // the rest is for the names
	share := math.Log(min(max(ratio, minRatio), maxRatio)/minRatio) / math.Log(maxRatio/minRatio)
	return labelWidth + int(math.Round(share*room))
}

// description is the picture in words.
func description(shown []*figure) string {
	parts := make([]string, len(shown))
	for i, f := range shown {
		parts[i] = f.Short + ": qtype " + number(f.ratio("qtype"))
		if f.Peer != nil {
			parts[i] += ", " + f.Peer.Name + " " + number(f.ratio("qtype")*f.Peer.Times)
		}
	}
	return strings.Join(parts, "; ") + "."
}
