package pdf

import (
	"slices"
	"strconv"
	"strings"
)

// labelRange is how pages from one on are numbered.
type labelRange struct {
	first  int // the index of the first page
	style  name
	prefix string
	start  int
}

// labels returns the labels of the pages: their numbers, unless the file has others.
func (f *file) labels(pages int) []string {
	var ranges []labelRange
	f.collectLabels(f.catalog()["PageLabels"], &ranges, 0)
	slices.SortStableFunc(ranges, func(a, b labelRange) int { return a.first - b.first })
	labels := make([]string, pages)
	for i := range labels {
		labels[i] = strconv.Itoa(i + 1)
		for _, r := range slices.Backward(ranges) {
			if r.first <= i {
				labels[i] = r.label(i)
				break
			}
		}
	}
	return labels
}

// collectLabels reads a number tree.
func (f *file) collectLabels(o object, ranges *[]labelRange, depth int) {
	d := f.dict(o)
	if d == nil || depth > 8 || len(*ranges) > 1000 {
		return
	}
	numbers, _ := f.resolve(d["Nums"]).(array)
	for i := 0; i+1 < len(numbers); i += 2 {
		rule := f.dict(numbers[i+1])
		*ranges = append(*ranges, labelRange{
			first: f.integer(numbers[i], 0), style: nameOf(f.resolve(rule["S"])),
			prefix: decodeText(f.resolve(rule["P"])), start: f.integer(rule["St"], 1),
		})
	}
	kids, _ := f.resolve(d["Kids"]).(array)
	for _, kid := range kids {
		f.collectLabels(kid, ranges, depth+1)
	}
}

// label returns the label of a page.
func (r labelRange) label(index int) string {
	n := min(max(index-r.first+r.start, 1), 1_000_000)
	switch r.style {
	case "D":
		return r.prefix + strconv.Itoa(n)
	case "R":
		return r.prefix + roman(n)
	case "r":
		return r.prefix + strings.ToLower(roman(n))
	case "A", "a":
		letter := string(rune('A' + (n-1)%26))
		if r.style == "a" {
			letter = strings.ToLower(letter)
		}
		return r.prefix + strings.Repeat(letter, min((n-1)/26+1, 50))
	}
	return r.prefix
}

// roman returns a number up to 3999 in Roman digits.
func roman(n int) string {
	if n > 3999 {
		return strconv.Itoa(n)
	}
	var b strings.Builder
	for _, d := range []struct {
		value int
		text  string
	}{{1000, "M"}, {900, "CM"}, {500, "D"}, {400, "CD"}, {100, "C"}, {90, "XC"}, {50, "L"}, {40, "XL"}, {10, "X"}, {9, "IX"}, {5, "V"}, {4, "IV"}, {1, "I"}} {
		for ; n >= d.value; n -= d.value {
			b.WriteString(d.text)
		}
	}
	return b.String()
}
