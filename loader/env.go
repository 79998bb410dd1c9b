package loader

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/joho/godotenv"

	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// expand replaces environment variables in a text: ${NAME} and ${NAME:-default}. NAME
// contains neither } nor :, default no }. A variable that is not set and has no
// default is kept as written and listed in unset. The result is not expanded again.
// There is no escape syntax: reportForms reports the forms of other programs.
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
	hasDefault bool   // there is a default, possibly empty
}

// envScanner finds the variables of a text in linear time, also with many unclosed
// openings: it remembers the positions of the next closing characters.
type envScanner struct {
	text  string
	at    int // where to continue
	sign  int // the next } or : at or after the last name
	brace int // the next } after the last default
}

// next returns the next variable.
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

// nextOf returns the offset of the first of the characters at or after from, or the
// length of the text. known is the result for a smaller from.
func nextOf(text, signs string, from, known int) int {
	if known >= from {
		return known
	}
	if i := strings.IndexAny(text[from:], signs); i >= 0 {
		return from + i
	}
	return len(text)
}

// maxDotEnv is the maximum size of a .env file, in bytes.
const maxDotEnv = 1 << 20

// environment combines the environment of the process with the .env files in the
// folder of the root document and in the working directory, in this order. The files are
// a part of a restricted document: they are not the environment of the user.
func environment(opts Options, folder string) (lookup, user func(string) (string, bool), diags diag.List) {
	process := opts.Lookup
	if process == nil {
		process = os.LookupEnv
	}
	if opts.NoDotEnv {
		return process, process, nil
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
	lookup = func(name string) (string, bool) {
		if value, found := process(name); found {
			return value, true
		}
		for _, values := range files {
			if value, found := values[name]; found {
				return value, true
			}
		}
		return "", false
	}
	if opts.Policy.Restricted() {
		return lookup, process, diags
	}
	return lookup, lookup, diags
}

// readDotEnv reads a .env file, if it exists. Its content may be secret, so
// diagnostics contain line numbers only.
func readDotEnv(path string) (map[string]string, diag.List) {
	info, err := os.Stat(path)
	if err != nil || info.IsDir() {
		return nil, nil //nolint:nilerr // the file is optional
	}
	file := &source.File{Path: path}
	whole := source.Span{File: file}
	if !info.Mode().IsRegular() || info.Size() > maxDotEnv {
		return nil, diag.List{ruleDotEnv.At(whole, "%s is not a regular file of at most %s and is ignored", path, size(maxDotEnv))}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, diag.List{ruleDotEnv.At(whole, "%s %s", path, asReadError(err))}
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if values, err := parseDotEnv(text); err == nil && !hasBareLine(text) {
		return values, nil
	}
	// Without a text no excerpt is printed, which could show secrets.
	values, diags := map[string]string{}, diag.List(nil)
	for i, line := range bytes.Split(text, []byte{'\n'}) {
		parsed, err := parseDotEnv(line)
		if column, problem := dotEnvProblem(string(line), err); problem != "" {
			at := source.Span{File: file, Start: source.Pos{Line: i + 1, Column: column}, End: source.Pos{Line: i + 1, Column: column + 1}}
			diags.Add(ruleDotEnv.At(at, "%s; the line is ignored", problem))
			continue
		}
		for name, value := range parsed {
			values[name] = value
		}
	}
	return values, diags
}

// hasBareLine reports whether a text without quotes over several lines has a line without a
// value, which the parser takes for a part of the next name.
func hasBareLine(text []byte) bool {
	for line := range strings.Lines(string(text)) {
		if strings.Count(line, `"`)%2+strings.Count(line, "'")%2 > 0 {
			return false
		}
	}
	for line := range strings.Lines(string(text)) {
		if _, problem := dotEnvProblem(line, nil); problem != "" {
			return true
		}
	}
	return false
}

// dotEnvProblem returns what is wrong with a line of a .env file that the parser rejects
// with an error, and the column. The text of the line is not part of it: it may be secret.
func dotEnvProblem(line string, rejected error) (column int, problem string) {
	body := strings.TrimLeft(line, " \t")
	skipped := len(line) - len(body)
	if rest, ok := strings.CutPrefix(body, "export "); ok {
		skipped += len(body) - len(strings.TrimLeft(rest, " \t"))
		body = strings.TrimLeft(rest, " \t")
	}
	body = strings.TrimRight(body, "\r\n")
	name := strings.TrimLeft(body, nameCharacters)
	at := skipped + len(body) - len(name)
	switch {
	case strings.TrimSpace(body) == "" || body[0] == '#':
		return 0, ""
	case at == skipped:
		return at + 1, "a name is expected here, of letters, digits and _"
	}
	separator := strings.TrimLeft(name, " \t")
	at += len(name) - len(separator)
	switch {
	case separator == "":
		return skipped + 1, "this line is not of the form NAME=value"
	case separator[0] != '=' && separator[0] != ':':
		return utf8.RuneCountInString(line[:at]) + 1, "= is expected here: a line has the form NAME=value"
	case rejected == nil:
		return 0, ""
	}
	value := strings.TrimLeft(separator[1:], " \t")
	at += len(separator) - len(value)
	if value != "" && (value[0] == '"' || value[0] == '\'') {
		return utf8.RuneCountInString(line[:at]) + 1, "the quote that opens here is not closed"
	}
	return utf8.RuneCountInString(line[:at]) + 1, "the value cannot be read: put it in quotes"
}

// nameCharacters are the characters of names in .env files.
const nameCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_."

// parseDotEnv parses text. A panic of the parser is an error too.
func parseDotEnv(text []byte) (values map[string]string, err error) {
	defer func() {
		if recover() != nil {
			err = fmt.Errorf("invalid syntax")
		}
	}()
	return godotenv.UnmarshalBytes(text)
}
