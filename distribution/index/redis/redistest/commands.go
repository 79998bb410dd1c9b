package redistest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	driver "github.com/redis/go-redis/v9"
)

// schema is an index.
type schema struct {
	name     string
	prefixes []string
	fields   []*field
}

// field is an attribute of an index.
type field struct {
	name, kind string
	dimensions int
	metric     string
	settings   []any
}

func (x *schema) field(name string) *field {
	for _, f := range x.fields {
		if f.name == name {
			return f
		}
	}
	return nil
}

// arguments are the unread arguments of a command. A missing or wrong one sets err.
type arguments struct {
	left []string
	err  error
}

func (a *arguments) fail(format string, args ...any) {
	if a.err == nil {
		a.err = fmt.Errorf(format, args...)
	}
}

func (a *arguments) text() string {
	if len(a.left) == 0 {
		a.fail("Expected an argument, but none provided")
		return ""
	}
	next := a.left[0]
	a.left = a.left[1:]
	return next
}

func (a *arguments) number(most int) int {
	text := a.text()
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > most {
		a.fail("Bad argument %q: expected a number up to %d", text, most)
		return 0
	}
	return n
}

// list reads a count and as many texts.
func (a *arguments) list() []string {
	n := a.number(len(a.left))
	if n > len(a.left) {
		a.fail("Bad arguments: expected %d more", n)
		return nil
	}
	list := a.left[:n]
	a.left = a.left[n:]
	return list
}

// next skips a word if it is next.
func (a *arguments) next(word string) bool {
	if len(a.left) == 0 || !strings.EqualFold(a.left[0], word) {
		return false
	}
	a.left = a.left[1:]
	return true
}

// word reads one of the words.
func (a *arguments) word(of ...string) string {
	word := strings.ToUpper(a.text())
	if !slices.Contains(of, word) {
		a.fail("Unknown argument `%s`", word)
	}
	return word
}

// execute runs a command.
func (s *Server) execute(name string, args []string) any {
	a := &arguments{left: args}
	index := a.text()
	if a.err != nil {
		return fmt.Errorf("ERR wrong number of arguments for '%s' command", name)
	}
	s.mu.Lock()
	x := s.indexes[index]
	s.mu.Unlock()
	switch {
	case name == "FT.CREATE" && x != nil:
		return fmt.Errorf("%s: Index already exists", index)
	case name == "FT.CREATE":
		return s.create(index, a)
	case x == nil:
		return fmt.Errorf("%s: no such index", index)
	case name == "FT.DROPINDEX" && len(a.left) == 0:
		s.mu.Lock()
		delete(s.indexes, index)
		s.mu.Unlock()
		return ok{}
	case name == "FT.INFO" && len(a.left) == 0:
		return s.info(x)
	case name == "FT.SEARCH":
		return s.search(x, a)
	}
	return fmt.Errorf("ERR unknown command '%s' with these arguments", name)
}

// create executes FT.CREATE.
func (s *Server) create(name string, a *arguments) any {
	x := &schema{name: name}
	x.readOptions(a)
	for a.err == nil && (len(a.left) > 0 || len(x.fields) == 0) {
		x.readField(a)
	}
	if a.err != nil {
		return a.err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.indexes[name] = x
	return ok{}
}

// readOptions reads what is before the fields.
func (x *schema) readOptions(a *arguments) {
	for a.err == nil {
		switch a.word("ON", "PREFIX", "SCORE", "STOPWORDS", "SCHEMA") {
		case "SCHEMA":
			return
		case "ON":
			a.word("HASH")
		case "PREFIX":
			x.prefixes = a.list()
		case "SCORE":
			if a.text() != "1.0" {
				a.fail("this server for tests gives all documents the score 1.0")
			}
		case "STOPWORDS":
			if len(a.list()) > 0 {
				a.fail("this server for tests has no stop words")
			}
		}
	}
}

// readField reads a field.
func (x *schema) readField(a *arguments) {
	f := &field{name: a.text()}
	if x.field(f.name) != nil {
		a.fail("Duplicate field in schema - %s", f.name)
	}
	f.kind = a.word("TAG", "TEXT", "NUMERIC", "VECTOR")
	switch {
	case f.kind == "VECTOR":
		f.readVector(a)
	case f.kind == "TAG" && a.next("SEPARATOR") && a.text() != ",":
		a.fail("this server for tests separates tags by commas")
	case f.kind == "TEXT" && a.next("WEIGHT") && a.text() != "1":
		a.fail("this server for tests gives all fields the weight 1")
	}
	x.fields = append(x.fields, f)
}

// readVector reads the settings of a field of vectors.
func (f *field) readVector(a *arguments) {
	algorithm := a.word("FLAT", "HNSW")
	given := &arguments{left: a.list(), err: a.err}
	allowed := []string{"TYPE", "DIM", "DISTANCE_METRIC", "INITIAL_CAP", "BLOCK_SIZE"}
	if algorithm == "HNSW" {
		allowed = []string{"TYPE", "DIM", "DISTANCE_METRIC", "INITIAL_CAP", "M", "EF_CONSTRUCTION", "EF_RUNTIME", "EPSILON"}
	}
	kind := ""
	for given.err == nil && len(given.left) > 0 {
		switch given.word(allowed...) {
		case "TYPE":
			kind = given.word("FLOAT32")
		case "DIM":
			f.dimensions = given.number(32768)
		case "DISTANCE_METRIC":
			f.metric = given.word("COSINE", "L2", "IP")
		default:
			given.number(1 << 20)
		}
	}
	a.err = given.err
	if kind == "" || f.dimensions == 0 || f.metric == "" {
		a.fail("Missing mandatory parameter: cannot create %s index", algorithm)
	}
	f.settings = []any{"algorithm", algorithm, "data_type", kind, "dim", f.dimensions, "distance_metric", f.metric}
}

// info executes FT.INFO.
func (s *Server) info(x *schema) any {
	docs, err := s.documents(x)
	if err != nil {
		return err
	}
	var attributes []any
	for _, f := range x.fields {
		attributes = append(attributes, append([]any{"identifier", f.name, "attribute", f.name, "type", f.kind}, f.settings...))
	}
	return []any{"index_name", x.name, "index_options", []any{}, "attributes", attributes, "num_docs", strconv.Itoa(len(docs)), "indexing", "0", "percent_indexed", "1"}
}

// document is an indexed hash.
type document struct {
	key    string
	fields map[string]string
	words  map[string][]string // of the fields of type TEXT
	length int                 // number of all words
}

// documents returns the hashes that an index contains: those with its prefix whose vectors
// have the length of its field.
func (s *Server) documents(x *schema) ([]*document, error) {
	ctx := context.Background()
	var hashes []string
	keys := s.data.ScanType(ctx, 0, "*", 1000, "hash").Iterator()
	for keys.Next(ctx) {
		key := keys.Val()
		if slices.ContainsFunc(x.prefixes, func(p string) bool { return strings.HasPrefix(key, p) }) {
			hashes = append(hashes, key)
		}
	}
	slices.Sort(hashes)
	hashes = slices.Compact(hashes) // SCAN may return a key twice
	answers := make([]*driver.MapStringStringCmd, len(hashes))
	_, err := s.data.Pipelined(ctx, func(pipe driver.Pipeliner) error {
		for i, key := range hashes {
			answers[i] = pipe.HGetAll(ctx, key)
		}
		return nil
	})
	var docs []*document
	for i, key := range hashes {
		if d := x.document(key, answers[i].Val()); d != nil {
			docs = append(docs, d)
		}
	}
	return docs, errors.Join(err, keys.Err())
}

// document returns an indexed hash, nil if it cannot be indexed.
func (x *schema) document(key string, fields map[string]string) *document {
	if len(fields) == 0 {
		return nil // it was deleted
	}
	d := &document{key: key, fields: fields, words: map[string][]string{}}
	for _, f := range x.fields {
		if v, has := fields[f.name]; has && f.kind == "VECTOR" && len(v) != 4*f.dimensions {
			return nil
		}
		if f.kind == "TEXT" {
			d.words[f.name] = words(fields[f.name])
			d.length += len(d.words[f.name])
		}
	}
	return d
}
