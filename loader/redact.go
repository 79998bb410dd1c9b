package loader

import (
	"strings"

	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/spec/source"
)

// collectSecrets adds the secrets of a tree to the Redactor of the caller: values of keys
// with the name of a secret, arguments of programs, and parts of addresses.
func collectSecrets(to *redact.Redactor, n *node, seen map[*node]bool) {
	if to == nil || seen[n] {
		return
	}
	if n.shared {
		seen[n] = true
	}
	switch n.kind {
	case text:
		if strings.Contains(n.text, "//") {
			to.AddAddress(n.text)
		} else if redact.HasTokenPrefix(n.text) {
			to.Add(n.text)
		}
	case sequence:
		to.AddArguments(textsOf(n.items))
	}
	for _, item := range n.items {
		collectSecrets(to, item, seen)
	}
	for _, p := range n.pairs {
		if isScalar(p.value) && redact.NamesSecret(p.key.text) {
			to.Add(p.value.text)
		}
		collectSecrets(to, p.value, seen)
	}
}

func isScalar(n *node) bool { return n.kind == text || n.kind == integer || n.kind == float }

// textsOf returns the texts of a list; empty texts for other values.
func textsOf(items []*node) []string {
	texts := make([]string, len(items))
	for i, item := range items {
		if isScalar(item) {
			texts[i] = item.text
		}
	}
	return texts
}

// collectHidden adds the parts of files that excerpts hide.
func collectHidden(to *redact.Redactor, files []*source.File) {
	if to == nil {
		return
	}
	for _, f := range files {
		for _, s := range f.Hidden() {
			addHidden(to, f, s)
		}
	}
}

// addHidden adds a hidden part of a file. In a file that is not YAML it may have more than
// the secret, so its words are added, too.
func addHidden(to *redact.Redactor, f *source.File, s source.Span) {
	for n := s.Start.Line; n <= s.End.Line; n++ {
		line := []rune(f.Line(n))
		from, until := 0, len(line)
		if n == s.Start.Line {
			from = min(s.Start.Column-1, until)
		}
		if n == s.End.Line {
			until = max(from, min(s.End.Column-1, until))
		}
		hidden := strings.Trim(strings.TrimSpace(string(line[from:until])), `"'`)
		to.Add(hidden)
		if word, _, more := strings.Cut(hidden, ","); more {
			to.Add(strings.Trim(word, `"' `))
		}
	}
}

// collectVariables adds the values of the environment variables of a secret.
func (d *decoder) collectVariables(n *node, at target) {
	if d.redactor == nil || at.isAddress { // the variables of an address are also hosts and users
		return
	}
	for _, v := range Variables(n.source) {
		if value, found := d.lookup(v.Name); found {
			d.redactor.Add(value)
		} else {
			d.redactor.Add(v.Default)
		}
	}
}

// secretLookup returns a lookup of environment variables. It adds variables with the name of
// a secret to a Redactor.
func secretLookup(to *redact.Redactor, lookup func(string) (string, bool)) func(string) (string, bool) {
	if to == nil {
		return lookup
	}
	return func(name string) (string, bool) {
		value, found := lookup(name)
		if found && redact.NamesSecretVariable(name) {
			to.Add(value)
		}
		return value, found
	}
}
