package loader

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/joho/godotenv"

	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// expand sets environment variables into a text (reference language.md 3.1):
// ${NAME} and ${NAME:-default}, where NAME holds neither } nor : and default no }.
// A variable that is not set and has no default stays as it is written and is
// named in unset. Nothing is expanded twice and nothing can be escaped.
func expand(text string, lookup func(string) (string, bool)) (expanded string, unset []string) {
	if !strings.Contains(text, "${") {
		return text, nil
	}
	var b strings.Builder
	scan := envScanner{text: text}
	done := 0
	for v, ok := scan.next(); ok; v, ok = scan.next() {
		b.WriteString(text[done:v.start])
		done = v.end
		value, found := lookup(v.name)
		switch {
		case found:
			b.WriteString(value)
		case v.hasDefault:
			b.WriteString(v.fallback)
		default:
			b.WriteString(text[v.start:v.end])
			unset = append(unset, v.name)
		}
	}
	b.WriteString(text[done:])
	return b.String(), unset
}

// variable is one ${NAME:-default} of a text.
type variable struct {
	start, end int // from $ to after }
	name       string
	fallback   string // the default
	hasDefault bool   // the default is there, be it empty
}

// envScanner finds the variables of a text in one pass, however many openings
// are never closed: it remembers where the next closing signs are.
type envScanner struct {
	text  string
	at    int // where to go on
	sign  int // the next } or : at or after the name that was looked at
	brace int // the next } after the default that was looked at
}

// next answers the next variable.
func (s *envScanner) next() (v variable, found bool) {
	for {
		i := strings.Index(s.text[s.at:], "${")
		if i < 0 {
			return v, false
		}
		v = variable{start: s.at + i}
		s.at = v.start + 1
		name := v.start + len("${")
		s.sign = nextOf(s.text, "}:", name, s.sign)
		if s.sign == name || s.sign == len(s.text) {
			continue
		}
		v.name = s.text[name:s.sign]
		if s.text[s.sign] == '}' {
			v.end = s.sign + 1
			s.at = v.end
			return v, true
		}
		if !strings.HasPrefix(s.text[s.sign:], ":-") {
			continue
		}
		fallback := s.sign + len(":-")
		s.brace = nextOf(s.text, "}", fallback, s.brace)
		if s.brace == len(s.text) {
			continue
		}
		v.fallback, v.hasDefault, v.end = s.text[fallback:s.brace], true, s.brace+1
		s.at = v.end
		return v, true
	}
}

// nextOf is the offset of the first of the signs at or after from, the text's
// length where there is none. Known is an earlier answer, for an earlier from.
func nextOf(text, signs string, from, known int) int {
	if known >= from {
		return known
	}
	if i := strings.IndexAny(text[from:], signs); i >= 0 {
		return from + i
	}
	return len(text)
}

// maxDotEnv is the most bytes of a .env file.
const maxDotEnv = 1 << 20

// environment chains the process's environment and the .env files: beside the
// root document first, then in the working directory (reference language.md 3.2).
func environment(opts Options, folder string) (lookup func(string) (string, bool), diags diag.List) {
	process := opts.Lookup
	if process == nil {
		process = os.LookupEnv
	}
	if opts.NoDotEnv {
		return process, nil
	}
	var files []map[string]string
	seen := map[string]bool{}
	for _, dir := range []string{folder, "."} {
		path := filepath.Join(dir, ".env")
		id := identity(path)
		if seen[id] {
			continue
		}
		seen[id] = true
		values, found := readDotEnv(path)
		files = append(files, values)
		diags.Add(found...)
	}
	return func(name string) (string, bool) {
		if value, found := process(name); found {
			return value, true
		}
		for _, values := range files {
			if value, found := values[name]; found {
				return value, true
			}
		}
		return "", false
	}, diags
}

// readDotEnv reads one .env file; none there is none read. Its content may be
// secret, so a found names lines by number only.
func readDotEnv(path string) (map[string]string, diag.List) {
	info, err := os.Stat(path)
	if err != nil || info.IsDir() {
		return nil, nil
	}
	file := &source.File{Path: path}
	whole := source.Span{File: file}
	if !info.Mode().IsRegular() || info.Size() > maxDotEnv {
		return nil, diag.List{ruleDotEnv.At(whole, "%s is not a regular file of at most %s and is left out", path, size(maxDotEnv))}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, diag.List{ruleDotEnv.At(whole, "%s %s", path, asReadError(err))}
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if values, err := parseDotEnv(text); err == nil {
		return values, nil
	}
	// The excerpt of a .env file would show secrets: no text, so none is printed.
	values, diags := map[string]string{}, diag.List(nil)
	for i, line := range bytes.Split(text, []byte{'\n'}) {
		parsed, err := parseDotEnv(line)
		if err != nil {
			at := source.Span{File: file, Start: source.Pos{Line: i + 1, Column: 1}, End: source.Pos{Line: i + 1, Column: 2}}
			diags.Add(ruleDotEnv.At(at, "this line is not of the form NAME=value and is left out"))
		}
		for name, value := range parsed {
			values[name] = value
		}
	}
	return values, diags
}

// parseDotEnv parses text; a panic of the parser on odd input is an error too.
func parseDotEnv(text []byte) (values map[string]string, err error) {
	defer func() {
		if recover() != nil {
			err = fmt.Errorf("not understood")
		}
	}()
	return godotenv.UnmarshalBytes(text)
}
