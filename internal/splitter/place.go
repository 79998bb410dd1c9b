package splitter

import (
	"slices"
	"sort"
	"strings"
	"unicode/utf8"
)

// Places converts ranges of a text to what a citation needs: characters, lines, pages and
// headings.
type Places struct {
	text     string
	marks    []mark // one for every markDistance bytes
	pages    []int  // characters at which pages begin, ascending
	headings []heading
}

// mark is the position of an offset that is a multiple of markDistance: how many
// characters and line ends begin before it.
type mark struct{ characters, lines int }

// markDistance is the number of bytes that the search for a place reads at most.
const markDistance = 1 << 10

// NewPlaces returns the places of a text. Pages are the characters at which pages begin,
// nil for a text without pages; only a Markdown text has headings.
func NewPlaces(text string, pages []int, markdown bool) *Places {
	p := &Places{text: text, pages: slices.Clone(pages)}
	slices.Sort(p.pages)
	var at mark
	for i := 0; i < len(text); i += markDistance {
		p.marks = append(p.marks, at)
		at = at.after(text[i:min(len(text), i+markDistance)])
	}
	if markdown {
		p.headings = slices.Collect(headings(text))
	}
	return p
}

// after returns the position after a text. A character counts where it begins.
func (m mark) after(text string) mark {
	for i := range len(text) {
		if utf8.RuneStart(text[i]) {
			m.characters++
		}
		if text[i] == '\n' {
			m.lines++
		}
	}
	return m
}

// Place is the position of a chunk.
type Place struct {
	CharStart, CharEnd int      // in characters, from 0; the end is exclusive
	LineStart, LineEnd int      // from 1
	Page               int      // the page of the beginning, from 1; 0 for a text without pages
	Headings           []string // the headings that the chunk is below of, the highest first
}

// Of returns the place of a chunk.
func (p *Places) Of(c Chunk) Place {
	start, end := p.at(c.Start), p.at(c.End)
	place := Place{CharStart: start.characters, CharEnd: end.characters, LineStart: start.lines + 1, LineEnd: end.lines + 1}
	if c.End > c.Start && p.text[c.End-1] == '\n' {
		place.LineEnd--
	}
	if len(p.pages) > 0 {
		place.Page = max(1, sort.SearchInts(p.pages, start.characters+1))
	}
	place.Headings = p.above(c.Start)
	return place
}

func (p *Places) at(offset int) mark {
	i := min(offset/markDistance, len(p.marks)-1)
	if i < 0 {
		return mark{}
	}
	return p.marks[i].after(p.text[i*markDistance : offset])
}

// maxHeadings is the number of headings before a chunk among which those above it are
// found.
const maxHeadings = 1000

// above returns the headings that an offset is below of. A heading at the offset is one
// of them.
func (p *Places) above(offset int) []string {
	n := sort.Search(len(p.headings), func(i int) bool { return p.headings[i].start > offset })
	var titles []string
	level := 1 << 30
	for i := n - 1; i >= max(0, n-maxHeadings) && level > 1; i-- {
		if h := p.headings[i]; h.level < level {
			titles, level = append(titles, strings.TrimFunc(h.title, isTrimmed)), h.level
		}
	}
	slices.Reverse(titles)
	return titles
}
