package reference

import (
	"regexp"
	"strings"
	"sync"
)

// parsePage returns the entries of a page, as package docgen writes it.
func parsePage(text string) []*Entry {
	var all []*Entry
	title := ""
	for i, part := range strings.Split("\n"+text, "\n## ") {
		if i == 0 {
			title, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimSpace(part), "# "), "\n")
			continue
		}
		name, body, _ := strings.Cut(part, "\n")
		e := &Entry{Name: name, Title: title}
		e.parse(body)
		all = append(all, e)
	}
	return all
}

// parse reads the text below the heading.
func (e *Entry) parse(body string) {
	body, example, hasExample := strings.Cut(body, "\n```yaml")
	rest := ""
	if hasExample {
		_, example, _ = strings.Cut(example, "\n") // the rest of the line of the fence
		example, rest, _ = strings.Cut(example, "\n```")
		e.Example = example
	}
	e.Text, e.Keys, _ = parseBlocks(body)
	parts := strings.Split(rest, "\n### ")
	e.Option = plainText(strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(parts[0]), "The values of "), ":"))
	for _, part := range parts[1:] {
		names, text, _ := strings.Cut(part, "\n")
		o := Option{Names: strings.Split(plainText(names), ", ")}
		o.Text, o.Keys, o.Under = parseBlocks(text)
		e.Options = append(e.Options, o)
	}
}

// parseBlocks returns the paragraphs and the keys of a part, and whose value has the keys: empty for the type itself.
func parseBlocks(body string) (paragraphs []string, keys []Key, under string) {
	for line := range strings.SplitSeq(body, "\n") {
		switch cells := cellsOf(line); {
		case len(cells) == 4 && strings.HasPrefix(cells[0], "Key"):
			under = plainText(strings.TrimPrefix(strings.TrimPrefix(cells[0], "Key"), " of "))
		case len(cells) == 4 && !strings.HasPrefix(cells[0], "---"):
			keys = append(keys, parseKey(cells))
		case len(cells) == 0 && line != "":
			paragraphs = append(paragraphs, plainText(line))
		}
	}
	return paragraphs, keys, under
}

// parseKey reads the cells of a row: key, value, default and description.
func parseKey(cells []string) Key {
	k := Key{Name: plainText(cells[0]), Value: plainText(cells[1]), Required: cells[2] == "**required**"}
	if !k.Required {
		k.Default = plainText(cells[2])
	}
	for paragraph := range strings.SplitSeq(cells[3], "<br>") {
		if text := plainText(paragraph); text != "" {
			k.Description = append(k.Description, text)
		}
	}
	return k
}

// cellsOf returns the cells of a row of a table, nil for other lines.
func cellsOf(line string) []string {
	if !strings.HasPrefix(line, "| ") || !strings.HasSuffix(line, "|") {
		return nil
	}
	const bar = "\x00" // a | within a cell
	cells := strings.Split(strings.ReplaceAll(line[1:len(line)-1], `\|`, bar), "|")
	for i, c := range cells {
		cells[i] = strings.TrimSpace(strings.ReplaceAll(c, bar, "|"))
	}
	return cells
}

// link matches a link of Markdown; a bracket that the text has is escaped.
var link = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(^|[^\\])\[((?:[^\]\\]|\\.)*)\]\([^)]*\)`) })

// plainText returns Markdown without its markup.
func plainText(text string) string {
	text = link().ReplaceAllString(text, "$1$2")
	text = strings.NewReplacer(`\\`, `\`, `\*`, `*`, `\[`, `[`, "&lt;", "<", "`", "").Replace(text)
	return strings.TrimSpace(text)
}
