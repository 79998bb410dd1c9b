package loader

import (
	"reflect"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
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

// decodeSecret decodes a text or {secret_name, key}. Messages never contain the text,
// and excerpts do not show it.
func (d *decoder) decodeSecret(n *node, to *spec.Secret, at target) {
	switch n.kind {
	case text:
		if at.isAddress && !strings.ContainsAny(n.text, "@?") {
			d.redactor.AddAddress(n.text)
		} else {
			hideValue(n)
			d.redactor.Add(n.text)
			d.collectVariables(n, at)
		}
		*to = spec.NewSecret(n.text)
		if !n.raw && !strings.Contains(n.source, "${") {
			*to = spec.NewLiteralSecret(n.text)
		}
	case mapping:
		hideNamed(n)
		if !d.looksLikeSecretReference(n) {
			hideAll(n)
			d.diags.add(d.wrongKind(n, at, "a text or {secret_name: …}"))
			return
		}
		for _, p := range n.pairs {
			if p.key.text != "secret_name" && p.key.text != "key" {
				hideAll(p.value)
			}
		}
		ref := new(spec.SecretReference)
		d.decodeStruct(n, reflect.ValueOf(ref).Elem(), "secret reference")
		to.Ref = ref
	case integer, float, boolean:
		hideValue(n)
		d.diags.add(ruleKind.At(n.span, "%s needs a text or a secret, not %s", at, n.kind.noun()).WithHint("put it in quotes"))
	default:
		hideAll(n)
		d.diags.add(d.wrongKind(n, at, "a text or a secret"))
	}
}

// looksLikeSecretReference reports whether a mapping has a key of a secret reference,
// or a similar one.
func (d *decoder) looksLikeSecretReference(n *node) bool {
	keys := d.planOf(reflect.TypeFor[spec.SecretReference]()).names
	return n.unread || len(n.pairs) == 0 || slices.ContainsFunc(n.pairs, func(p pair) bool {
		return slices.Contains(keys, p.key.text) || diag.Nearest(p.key.text, keys) != ""
	})
}

// hideValue hides a secret from excerpts if the document contains a part of it. ${NAME}
// alone shows nothing, nor does an address without a password.
func hideValue(n *node) {
	if n.span.File == nil || !n.raw && !hasText(n.source) {
		return
	}
	_, address, isURL := strings.Cut(n.source, "://")
	if isURL && !strings.ContainsAny(address, "@?") {
		return
	}
	if n.raw { // the document has only the name of the file
		if whole, found := n.span.Text(); found {
			whole.File.MarkSecret(whole)
		}
		return
	}
	n.span.File.MarkSecret(n.span)
}

// hasText reports whether a text is more than environment variables without defaults.
func hasText(s string) bool {
	done := 0
	for _, v := range Variables(s) {
		if done < v.Start || v.Default != "" {
			return true
		}
		done = v.End
	}
	return done < len(s)
}

// hideAll hides all values in a value of the wrong kind in the place of secrets.
func hideAll(n *node) {
	if isScalar(n) {
		hideValue(n)
	}
	for _, item := range n.items {
		hideAll(item)
	}
	for _, p := range n.pairs {
		hideAll(p.value)
	}
}

// hideNamed hides values whose keys look like secrets in a value that is not decoded as a
// secret: a free mapping, or a misplaced one.
func hideNamed(n *node) {
	for _, item := range n.items {
		hideNamed(item)
	}
	for _, p := range n.pairs {
		switch p.value.kind {
		case text, integer, float:
			if redact.NamesSecret(p.key.text) {
				hideValue(p.value)
			}
		default:
			hideNamed(p.value)
		}
	}
}

// hideUnknown hides the value of an unknown key: in a struct with secrets it may be the
// misspelled key of one, unless another key is more similar.
func hideUnknown(key pair, owner reflect.Value, p *plan, meant string) {
	hideNamed(&node{pairs: []pair{key}})
	if len(key.value.items)+len(key.value.pairs) > 0 || meant == "type" {
		return
	}
	secret := func(f field) bool { return owner.FieldByIndex(f.index).Type() == reflect.TypeFor[spec.Secret]() }
	if i, known := p.byName[meant]; slices.ContainsFunc(p.fields, secret) && (!known || secret(p.fields[i])) {
		hideValue(key.value)
	}
}

// hideInText hides values whose keys look like secrets in a file that is not YAML and has
// no tree.
func hideInText(f *source.File) {
	for i, line := range strings.Split(string(f.Text), "\n") {
		for at := 0; at < len(line); {
			from, to, next := namedValue(line, at)
			if from < to && hasText(line[from:to]) {
				f.MarkSecret(source.Span{File: f, Start: source.Pos{Line: i + 1, Column: len([]rune(line[:from])) + 1},
					End: source.Pos{Line: i + 1, Column: len([]rune(line[:to])) + 1}})
			}
			at = next
		}
	}
}

// longestParted is the maximum length, in bytes, of a line whose values are hidden one
// by one: in a longer line everything after the first secret is hidden.
const longestParted = 4096

// namedValue returns the first value at or after an offset of a line whose key names a
// secret, and where to continue.
func namedValue(line string, at int) (from, to, next int) {
	for {
		n := strings.IndexByte(line[at:], ':')
		if n < 0 {
			return 0, 0, len(line)
		}
		key := strings.TrimRight(line[at:at+n], " \t\"'")
		key = key[strings.LastIndexAny(key, " \t\"'{,[")+1:]
		at += n + 1
		if !redact.NamesSecret(key) {
			continue
		}
		from = len(line) - len(strings.TrimLeft(line[at:], " \t"))
		to = max(from, len(strings.TrimRight(line, " \t\r")))
		if len(line) > longestParted || !strings.Contains(line[:at], "{") {
			return from, to, len(line)
		}
		if n := strings.IndexAny(line[from:], ",}"); n >= 0 { // between braces it ends sooner
			to = from + n
		}
		return from, to, max(to, at)
	}
}
