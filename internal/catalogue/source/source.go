// Package source reads the rows of a catalogue of models from the files of those who
// collect them: the catalogue's own JSON lines, models.dev's api.json, LiteLLM's
// model_prices_and_context_window.json, and a reference list with prose.
package source

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/qtype-dev/qtype/internal/catalogue"
)

// Rows are the content of a file.
type Rows struct {
	Models  []catalogue.Model
	Servers []catalogue.Server
	Skipped []string // what was not read, and why
	Invalid []string // the rows with a wrong value, and what it is
}

// Read reads a file in any of the formats, which its content decides.
func Read(text []byte) (Rows, error) {
	if !utf8.Valid(text) {
		return Rows{}, errors.New("the file is not UTF-8 text")
	}
	rows, err := read(text)
	if err != nil {
		return Rows{}, err
	}
	for _, key := range repeatedKeys(text) {
		rows.Invalid = append(rows.Invalid, key+": the file has this key again, whose value is used")
	}
	seen := map[[3]string]bool{}
	rows.Models = slices.DeleteFunc(rows.Models, func(m catalogue.Model) bool {
		_, problem := m.Problem()
		name := [3]string{m.Provider, strings.ToLower(m.ID), m.BaseURL}
		if problem == "" && seen[name] {
			problem = "another row has this provider and id"
		}
		seen[name] = true
		if problem != "" {
			rows.Invalid = append(rows.Invalid, m.Provider+"/"+m.ID+": "+problem)
		}
		return problem != ""
	})
	slices.Sort(rows.Invalid)
	if len(rows.Models) == 0 {
		if len(rows.Invalid) > 0 {
			return Rows{}, fmt.Errorf("no row can be used: %s", rows.Invalid[0])
		}
		return Rows{}, errors.New("the file has no models")
	}
	slices.SortStableFunc(rows.Models, func(a, b catalogue.Model) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.ID, b.ID))
	})
	slices.SortFunc(rows.Servers, func(a, b catalogue.Server) int { return cmp.Compare(a.Provider, b.Provider) })
	return rows, nil
}

// read reads a file by its first value.
func read(text []byte) (Rows, error) {
	text = bytes.TrimSpace(bytes.TrimPrefix(text, []byte("\ufeff")))
	written := Written(text)
	var top map[string]json.RawMessage
	switch {
	case written || bytes.HasPrefix(text, []byte("catalogue:")):
		return readYAML(text)
	case bytes.HasPrefix(text, []byte("[")):
		return readReference(text)
	case bytes.HasPrefix(text, []byte(`{"provider":`)) && bytes.Contains(text, []byte("\n{")):
		return readLines(text)
	case json.Unmarshal(text, &top) != nil:
		return Rows{}, errors.New("the file is neither JSON nor JSON lines")
	case top["provider"] != nil && top["id"] != nil: // one line
		return readLines(text)
	case top["sample_spec"] != nil || looksLikeLiteLLM(top):
		return readLiteLLM(top), nil
	}
	return readModelsDev(top)
}

// repeatedKeys returns the keys of objects that a JSON text has more than once, as paths: those of providers,
// models and their facts. It returns nothing for other texts.
func repeatedKeys(text []byte) (paths []string) {
	in := json.NewDecoder(bytes.NewReader(text))
	var walk func(path string) error
	walk = func(path string) error {
		open, err := in.Token()
		if err != nil || open != json.Delim('{') && open != json.Delim('[') {
			return err
		}
		seen := map[string]bool{}
		for in.More() {
			below := path
			if open == json.Delim('{') {
				key, err := in.Token()
				if err != nil {
					return err
				}
				name, _ := key.(string)
				below = strings.TrimPrefix(path+"/"+name, "/")
				if seen[name] {
					paths = append(paths, below)
				}
				seen[name] = true
			}
			if err := walk(below); err != nil {
				return err
			}
		}
		_, err = in.Token()
		return err
	}
	var err error
	for err == nil { // lines have several values
		err = walk("")
	}
	return paths
}

// readLines reads the catalogue's own format.
func readLines(text []byte) (Rows, error) {
	var rows Rows
	for number, one := range bytes.Split(text, []byte("\n")) {
		if len(bytes.TrimSpace(one)) == 0 {
			continue
		}
		var m catalogue.Model
		if err := json.Unmarshal(one, &m); err != nil {
			return Rows{}, fmt.Errorf("line %d: %s", number+1, plain(err))
		}
		if m.ID != "" {
			rows.Models = append(rows.Models, m)
			continue
		}
		var s catalogue.Server
		if err := json.Unmarshal(one, &s); err != nil {
			return Rows{}, fmt.Errorf("line %d: %s", number+1, plain(err))
		}
		rows.Servers = append(rows.Servers, s)
	}
	return rows, nil
}

// readYAML reads a models.yaml: the rows below catalogue.
func readYAML(text []byte) (Rows, error) {
	var file struct {
		Rows any `yaml:"catalogue"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		return Rows{}, err
	}
	list, ok := file.Rows.([]any)
	if !ok && file.Rows != nil {
		return Rows{}, errors.New("catalogue must be a list of rows")
	}
	var rows Rows
	for i, item := range list {
		row, ok := item.(map[string]any)
		if !ok {
			rows.Invalid = append(rows.Invalid, fmt.Sprintf("row %d: a row must be a mapping", i+1))
			continue
		}
		for key, value := range row {
			if day, isTime := value.(time.Time); isTime {
				row[key] = day.Format(time.DateOnly)
			}
		}
		one, err := json.Marshal(row)
		var m catalogue.Model
		if err == nil {
			in := json.NewDecoder(bytes.NewReader(one))
			in.DisallowUnknownFields()
			err = in.Decode(&m)
		}
		if err != nil {
			rows.Invalid = append(rows.Invalid, fmt.Sprintf("row %d: %s", i+1, plain(err)))
			continue
		}
		rows.Models = append(rows.Models, m)
	}
	return rows, nil
}

// plain returns an error of the JSON decoder without types of Go.
func plain(err error) string {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if wrong.Field == "" {
			return "a row must be an object, not a " + wrong.Value
		}
		return fmt.Sprintf("%s cannot be a %s", wrong.Field, wrong.Value)
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

// Lines writes rows as JSON lines: servers, then models.
func Lines(rows Rows) ([]byte, error) {
	var text bytes.Buffer
	out := json.NewEncoder(&text)
	out.SetEscapeHTML(false)
	for _, s := range rows.Servers {
		if err := out.Encode(s); err != nil {
			return nil, err
		}
	}
	for _, m := range rows.Models {
		if err := out.Encode(m); err != nil {
			return nil, err
		}
	}
	return text.Bytes(), nil
}

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
