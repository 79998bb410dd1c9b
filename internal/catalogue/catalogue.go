// Package catalogue has what is known of models: limits, prices, reasoning, parameters that
// they refuse, dates of shutdown and replacements. The built-in catalogue is models.jsonl,
// embedded compressed, and read on the first lookup of a model of the provider. A user's rows can precede it.
//
// Names are resolved exactly: a name that is not that of a row, or one of its documented
// spellings, is unknown. No row is meant by a name that only begins like its name.
package catalogue

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
)

// Catalogue is a list of models. It is safe for concurrent use. The zero value and nil are
// the built-in catalogue.
type Catalogue struct {
	own   *index     // the rows that precede those of below; nil for none
	below *Catalogue // the rows where own has none; nil for the built-in catalogue
}

// New returns a catalogue in which rows precede those of below; nil is the built-in
// catalogue. A row that has the id of one below changes the keys that it has, and prices as a
// whole. The first of equal names wins.
func New(rows []Model, below *Catalogue) *Catalogue {
	own := newIndex()
	for i := range rows {
		own.addOf(below.changed(&rows[i]), rows[i].BaseURL)
	}
	return &Catalogue{own: own, below: below}
}

// changed completes a row with the row of that id.
func (c *Catalogue) changed(row *Model) *Model {
	made := *row
	made.PricedByUser = row.Prices != nil
	if before, ok := c.Lookup(row.Provider, row.ID); ok && before.Provider == row.Provider && strings.EqualFold(before.ID, row.ID) {
		made = before.clone()
		made.PricedByUser = row.Prices != nil || before.PricedByUser
		if row.Prices != nil || row.BaseURL != "" && row.BaseURL != before.BaseURL {
			made.Prices = nil // those of before are of another server
		}
		text, err := []byte(row.Given), error(nil)
		if text == nil {
			text, err = json.Marshal(row)
		}
		if err == nil {
			err = json.Unmarshal(text, &made)
		}
		if err != nil {
			panic("catalogue: " + err.Error()) // a Model has a JSON form
		}
	}
	made.Kind = cmp.Or(made.Kind, Chat)
	return &made
}

// clone returns a deep copy.
func (m *Model) clone() Model {
	var made Model
	text, err := json.Marshal(m)
	if err == nil {
		err = json.Unmarshal(text, &made)
	}
	if err != nil {
		panic("catalogue: " + err.Error()) // a Model has a JSON form
	}
	return made
}

// Lookup finds a model of the built-in catalogue. See Catalogue.Lookup.
func Lookup(provider, name string) (*Model, bool) { return (*Catalogue)(nil).Lookup(provider, name) }

// All lists the models of the built-in catalogue, by provider and id.
func All() []Model { return (*Catalogue)(nil).All() }

// Lookup finds the model that a provider knows by a name, in any spelling that the provider
// documents: with a date, an alias, a Bedrock profile or ARN, a Vertex version, a path, or
// as the base of a fine-tuned model. Case is ignored. An empty provider looks for a model in
// the rows of all providers, as gateways name them: with the publisher before a slash, or
// without; such a model has no prices, nor has one with the row of another provider:
// Google's models on Vertex, OpenAI's on Azure. It is false for an unknown name.
func (c *Catalogue) Lookup(provider, name string) (*Model, bool) {
	for _, spelling := range spellings(provider, name) {
		for at := c; at != nil && at.own != nil; at = at.below {
			if m := at.own.find(spelling); m != nil {
				return m, true
			}
		}
		if m := builtin().find(spelling); m != nil {
			return m, true
		}
	}
	return nil, false
}

// LookupOwn finds a model by the rows of the user, which hold for the models behind any server: those
// that have its address, then those of the provider that have none. It has no prices but those of
// the user.
func (c *Catalogue) LookupOwn(provider, name, baseURL string) (*Model, bool) {
	for _, scope := range serverScopes(baseURL) {
		for _, spelling := range spellings(provider, name) {
			spelling.provider = cmp.Or(scope, spelling.provider)
			for at := c; at != nil && at.own != nil; at = at.below {
				m := at.own.find(spelling)
				if m != nil && !m.PricedByUser && m.Prices != nil {
					unpriced := *m
					unpriced.Prices = nil
					m = &unpriced
				}
				if m != nil {
					return m, true
				}
			}
		}
	}
	return nil, false
}

// indexes lists the rows in the order in which they are looked up.
func (c *Catalogue) indexes() iter.Seq[*index] {
	return func(yield func(*index) bool) {
		for ; c != nil && c.own != nil; c = c.below {
			if !yield(c.own) {
				return
			}
		}
		yield(builtin().all())
	}
}

// All lists the models by provider and id. Rows that others precede are not listed.
func (c *Catalogue) All() []Model {
	var all []Model
	seen := map[key]bool{}
	for rows := range c.indexes() {
		for _, m := range rows.models() {
			if k := keyOf(cmp.Or(m.Server, m.Provider), m.ID); !seen[k] {
				seen[k] = true
				all = append(all, *m)
			}
		}
	}
	slices.SortFunc(all, func(a, b Model) int { return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.ID, b.ID)) })
	return all
}

// Servers lists the hosts that serve a protocol of another provider.
func Servers() []Server { return builtin().providers[serversFile]().servers }

// Suggested returns the id of the model of a provider that examples and templates name, empty
// for none.
func Suggested(provider string) string {
	for _, m := range All() {
		if m.Provider == provider && m.Suggested {
			return m.ID
		}
	}
	return ""
}

// ServerOf returns the provider of the catalogue whose service has a base URL: deepseek for
// https://api.deepseek.com/v1. It is empty for other addresses.
func ServerOf(baseURL string) string {
	host := hostOf(baseURL)
	for _, s := range Servers() {
		if host != "" && host == hostOf(s.BaseURL) {
			return s.Provider
		}
	}
	return ""
}

// hostOf returns the host and port of a URL.
func hostOf(url string) string {
	_, rest, _ := strings.Cut(strings.ToLower(url), "://")
	host, _, _ := strings.Cut(rest, "/")
	return host
}

// serverScopes lists the keys of the providers in an index whose rows hold for a server: of its
// address, of its host, and of the provider itself, which is empty.
func serverScopes(baseURL string) []string {
	if baseURL == "" {
		return []string{""}
	}
	return []string{serverScope(baseURL), serverScope("://" + hostOf(baseURL)), ""}
}

// serverScope is the key of a server in an index. No provider has such a name.
func serverScope(baseURL string) string {
	_, rest, _ := strings.Cut(baseURL, "://")
	host, path, _ := strings.Cut(strings.TrimRight(rest, "/"), "/")
	return "server " + strings.ToLower(host) + "/" + path
}

// key is a name of a provider, in lower case.
type key struct{ provider, name string }

// keyOf returns the key of a name.
func keyOf(provider, name string) key { return key{provider, strings.ToLower(name)} }

// index has rows by their names. Rows of the built-in catalogue are decoded when they are
// found.
type index struct {
	rows     []*row
	names    map[key]*row
	anywhere map[string]*row // the row of a name without a provider: that of the first provider in publishers
	servers  []Server
}

// row is a model, or the text of one.
type row struct {
	provider, id string
	text         []byte
	decode       sync.Once
	model        *Model
}

// newIndex returns an index without rows.
func newIndex() *index { return &index{names: map[key]*row{}, anywhere: map[string]*row{}} }

// add adds a model.
func (x *index) add(m *Model) {
	x.addRow(&row{provider: m.Provider, id: m.ID, model: m}, slices.Concat(m.Aliases, m.Snapshots))
}

// addOf adds the row of a user for the models of a server. Without an address, or with that of
// the provider's service, it is one of the provider.
func (x *index) addOf(m *Model, baseURL string) {
	service, ok := Lookup(m.Provider, m.ID)
	if baseURL == "" || ServerOf(baseURL) == m.Provider || ok && service.BaseURL == baseURL {
		x.add(m)
		return
	}
	m.Server = serverScope(baseURL)
	x.addRow(&row{provider: m.Server, id: m.ID, model: m}, slices.Concat(m.Aliases, m.Snapshots))
}

// addRow adds a row with its other names.
func (x *index) addRow(r *row, names []string) {
	x.rows = append(x.rows, r)
	for _, name := range append([]string{r.id}, names...) {
		k := keyOf(r.provider, name)
		if _, taken := x.names[k]; !taken {
			x.names[k] = r
		}
		if strings.HasPrefix(r.provider, "server ") {
			continue
		}
		if other := x.anywhere[k.name]; other == nil || rank(r.provider) < rank(other.provider) {
			x.anywhere[k.name] = r
		}
	}
}

// find returns the model of a spelling, nil for none.
func (x *index) find(s spelling) *Model {
	r := x.anywhere[s.name]
	if s.provider != "" {
		r = x.names[key{s.provider, s.name}]
	}
	if r == nil {
		return nil
	}
	return s.apply(r.get())
}

// models returns all models.
func (x *index) models() []*Model {
	all := make([]*Model, len(x.rows))
	for i, r := range x.rows {
		all[i] = r.get()
	}
	return all
}

// get decodes the model.
func (r *row) get() *Model {
	r.decode.Do(func() {
		if r.model != nil {
			return
		}
		r.model = new(Model)
		if err := json.Unmarshal(r.text, r.model); err != nil {
			panic(fmt.Sprintf("catalogue: row %s/%s: %v", r.provider, r.id, err)) // a test decodes all embedded rows
		}
	})
	return r.model
}

// HasProvider reports whether the catalogue has models of a provider.
func (c *Catalogue) HasProvider(provider string) bool {
	if _, ok := builtin().providers[provider]; ok {
		return true
	}
	for ; c != nil && c.own != nil; c = c.below {
		if slices.ContainsFunc(c.own.rows, func(r *row) bool { return r.provider == provider }) {
			return true
		}
	}
	return false
}
