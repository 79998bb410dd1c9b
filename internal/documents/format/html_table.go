package format

import (
	"strconv"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// maxSpan is the maximum number of columns that a cell may cover.
const maxSpan = 100

// isDataTable reports whether a table has data and does not merely arrange the page: it
// has no table in it and at least two cells in some row.
func isDataTable(table *html.Node) bool {
	wide := false
	for d := range table.Descendants() {
		switch d.DataAtom {
		case atom.Table, atom.Pre, atom.H1, atom.H2:
			return false
		case atom.Tr:
			cells := 0
			for c := d.FirstChild; c != nil; c = c.NextSibling {
				if c.DataAtom == atom.Td || c.DataAtom == atom.Th {
					cells++
				}
			}
			wide = wide || cells > 1
		}
	}
	return wide && attribute(table, "role") != "presentation"
}

// pageTable writes a table. The text of a cell that covers several columns or rows is
// in the first of them.
func (p *pageWriter) pageTable(table *html.Node) {
	if caption := find(table, atom.Caption); caption != nil {
		p.children(caption, mood{})
		p.flush()
	}
	var rows [][]string
	covered := map[[2]int]bool{} // cells that one above covers
	for d := range table.Descendants() {
		if d.DataAtom == atom.Tr && !p.stopped() {
			rows = append(rows, p.cells(d, len(rows), covered))
		}
	}
	p.table(rows)
}

// cells returns the texts of a row.
func (p *pageWriter) cells(tr *html.Node, number int, covered map[[2]int]bool) []string {
	var row []string
	for c := tr.FirstChild; c != nil; c = c.NextSibling {
		if c.DataAtom != atom.Td && c.DataAtom != atom.Th {
			continue
		}
		for covered[[2]int{number, len(row)}] {
			row = append(row, "")
		}
		p.inCell++
		p.children(c, mood{})
		p.inCell--
		columns, rows := span(c, "colspan"), span(c, "rowspan")
		for i := range columns {
			for below := 1; below < rows && len(covered) < 10_000; below++ {
				covered[[2]int{number + below, len(row) + i}] = true
			}
		}
		row = append(row, p.text.markdown())
		p.text = inline{}
		for range columns - 1 {
			row = append(row, "")
		}
	}
	return row
}

func span(cell *html.Node, key string) int {
	n, err := strconv.Atoi(attribute(cell, key))
	if err != nil {
		return 1
	}
	return min(max(n, 1), maxSpan)
}
