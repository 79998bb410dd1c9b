package source

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/qtype-dev/qtype/internal/catalogue"
)

// Updates returns the rows that a catalogue does not have, and what differs of others:
// windows, prices and dates of shutdown. What a file does not say does not differ.
func Updates(rows []catalogue.Model, known *catalogue.Catalogue) []catalogue.Model {
	var updates []catalogue.Model
	for _, row := range rows {
		before, ok := known.Lookup(row.Provider, row.ID)
		if !ok || before.ID != row.ID || before.Provider != row.Provider {
			updates = append(updates, row)
			continue
		}
		change := catalogue.Model{Provider: row.Provider, ID: row.ID, Sources: row.Sources}
		differs := false
		for _, n := range []struct{ to, from, has *int }{
			{&change.ContextWindow, &row.ContextWindow, &before.ContextWindow}, {&change.MaxInput, &row.MaxInput, &before.MaxInput}, {&change.MaxOutput, &row.MaxOutput, &before.MaxOutput},
		} {
			if *n.from != 0 && *n.from != *n.has {
				*n.to, differs = *n.from, true
			}
		}
		if row.Shutdown != "" && row.Shutdown != before.Shutdown {
			change.Shutdown, differs = row.Shutdown, true
		}
		if row.Prices != nil && (before.Prices == nil || !row.Prices.Agrees(before.Prices.Rates)) {
			change.Prices, differs = row.Prices, true
		}
		if differs {
			updates = append(updates, change)
		}
	}
	return updates
}

// header begins the files that YAML writes.
const header = "# Rows of the catalogue of models from"

// Written reports whether a file is one that YAML wrote.
func Written(text []byte) bool { return bytes.HasPrefix(text, []byte(header)) }

// YAML writes rows as a file of a user, one row a line.
func YAML(rows []catalogue.Model, from string) ([]byte, error) {
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s %s. They precede the built-in rows; `qtype models` lists all.\ncatalogue:\n", header, from)
	if len(rows) == 0 {
		text.WriteString("  []\n")
	}
	for _, row := range rows {
		text.WriteString("  - ")
		out := json.NewEncoder(&text)
		out.SetEscapeHTML(false)
		if err := out.Encode(row); err != nil {
			return nil, err
		}
	}
	return text.Bytes(), nil
}
