package source

import (
	"bytes"
	"sync/atomic"
)

// lineStep is how many lines are between two entries of a lineIndex.
const lineStep = 64

// lineIndex has the offsets of some lines of a text, so that the lines of many
// diagnostics are found without reading the text from its start for each.
type lineIndex struct{ made atomic.Pointer[lineOffsets] }

// lineOffsets are the offsets of the lines 1, 1+lineStep, 1+2*lineStep, … of a text.
type lineOffsets struct {
	text []byte // the text that they are of
	at   []int
}

// start returns the offset of line n of a text, and whether the text has that line.
func (x *lineIndex) start(text []byte, n int) (offset int, found bool) {
	made := x.made.Load()
	if made == nil || len(made.text) != len(text) || len(text) > 0 && &made.text[0] != &text[0] {
		made = indexLines(text)
		x.made.Store(made)
	}
	entry := (n - 1) / lineStep
	if entry >= len(made.at) {
		return 0, false
	}
	offset = made.at[entry]
	for range (n - 1) % lineStep {
		next := bytes.IndexByte(text[offset:], '\n')
		if next < 0 {
			return 0, false
		}
		offset += next + 1
	}
	return offset, true
}

// indexLines reads a whole text.
func indexLines(text []byte) *lineOffsets {
	x := &lineOffsets{text: text, at: []int{0}}
	for offset, line := 0, 1; ; line++ {
		next := bytes.IndexByte(text[offset:], '\n')
		if next < 0 {
			return x
		}
		if offset += next + 1; line%lineStep == 0 {
			x.at = append(x.at, offset)
		}
	}
}
