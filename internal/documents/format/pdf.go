package format

import (
	"context"
	"errors"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/internal/documents/pdf"
)

// readBy names what can read a file without text.
const readBy = "a model step can read it: pass the file to an LLMInference whose model accepts images or PDF files"

// convertPDF returns the text of a PDF file, with its pages. Headings are recognized by
// the size of their letters.
func convertPDF(ctx context.Context, j *job) (*Result, error) {
	doc, err := pdf.Read(ctx, j.file.Data, j.file.Password, pdf.Limits{Pages: j.limits.Pages, Unpacked: j.limits.Unpacked})
	switch {
	case errors.Is(err, pdf.ErrEncrypted):
		return nil, errorf(Encrypted, "is encrypted: set password to its password")
	case errors.Is(err, pdf.ErrPassword):
		return nil, errorf(Encrypted, "is encrypted, and not with this password")
	case errors.Is(err, pdf.ErrTooLarge):
		return nil, unpackedTooLarge(j.limits)
	case errors.Is(err, pdf.ErrPages):
		return nil, tooManyPages(j.limits)
	case err != nil:
		return nil, err
	}
	if err := readable(doc); err != nil {
		return nil, err
	}
	w := j.writer(ctx)
	levels := headingSizes(doc)
	title := doc.Title
	for _, page := range doc.Pages {
		w.page(page.Label)
		inList := false
		for _, b := range page.Blocks {
			level := levels.of(b)
			marker := itemMarker().FindString(b.Text)
			isItem := marker != "" && b.Rows == nil && level == 0
			switch in := (&inline{}); {
			case b.Rows != nil:
				w.table(b.Rows)
			case level > 0:
				in.add(b.Text, 0, "")
				w.heading(level, in)
				if title == "" {
					title = b.Text
				}
			case isItem:
				in.add(strings.TrimPrefix(b.Text, marker), 0, "")
				w.push(container{first: marker, rest: strings.Repeat(" ", len(marker)), gap: !inList})
				w.paragraph(in)
				w.pop()
			default:
				w.plainParagraph(b.Text)
			}
			inList = isItem
		}
		if w.stopped() {
			return nil, w.err
		}
	}
	result, err := w.result()
	if err != nil {
		return nil, err
	}
	result.Title = title
	for i, p := range doc.Pages {
		if p.Unknown > 0 {
			result.Pages[i].Unknown = math.Ceil(1000*float64(p.Unknown)/float64(p.Unknown+p.Known)) / 1000
		}
	}
	return result, nil
}

// itemMarker matches the mark of an item of a list.
var itemMarker = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(- |\d{1,2}[.)] )`) })

// readable returns an error for a file without text, or whose fonts do not state what
// their glyphs mean.
func readable(doc *pdf.Document) error {
	known, unknown, images := 0, 0, 0
	for _, p := range doc.Pages {
		known += p.Known
		unknown += p.Unknown
		if p.Images {
			images++
		}
	}
	switch {
	case known == 0 && unknown == 0 && images > 0:
		return errorf(NoText, "has no text, only images of pages, as scanners make: %s", readBy)
	case unknown > known:
		return errorf(NoText, "has text whose fonts do not state its characters: %s", readBy)
	case known == 0:
		return errorf(NoText, "has no text: %s", readBy)
	}
	return nil
}

// maxHeading is the maximum number of characters of a heading.
const maxHeading = 200

// sizes are the sizes of headings, from the largest to the smallest.
type sizes struct {
	body     float64
	headings []float64
}

// headingSizes finds the size of most of the text and the larger ones.
func headingSizes(doc *pdf.Document) sizes {
	letters := map[float64]int{}
	for _, p := range doc.Pages {
		for _, b := range p.Blocks {
			letters[b.Size] += utf8.RuneCountInString(b.Text)
		}
	}
	var s sizes
	most := 0
	for size, n := range letters {
		if n > most || n == most && size < s.body {
			s.body, most = size, n
		}
	}
	for size := range letters {
		if size >= 1.15*s.body {
			s.headings = append(s.headings, size)
		}
	}
	slices.Sort(s.headings)
	slices.Reverse(s.headings)
	return s
}

// of returns the level of a block that is a heading, else 0.
func (s sizes) of(b pdf.Block) int {
	if b.Rows != nil || utf8.RuneCountInString(b.Text) > maxHeading || math.IsNaN(b.Size) || !strings.ContainsFunc(b.Text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
		return 0
	}
	return min(slices.Index(s.headings, b.Size)+1, 4)
}
