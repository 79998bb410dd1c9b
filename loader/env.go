package loader

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/joho/godotenv"

	"github.com/qtype-dev/qtype/internal/remotefs"
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
	done := 0
	for _, v := range Variables(text) {
		b.WriteString(text[done:v.Start])
		done = v.End
		value, found := lookup(v.Name)
		switch {
		case found:
			b.WriteString(value)
		case v.HasDefault:
			b.WriteString(v.Default)
		default:
			b.WriteString(text[v.Start:v.End])
			unset = append(unset, v.Name)
		}
	}
	b.WriteString(text[done:])
	return b.String(), unset
}

// Variable is one ${NAME} or ${NAME:-default} of a text.
type Variable struct {
	Start, End int    // byte offsets of $ and after }
	Name       string // the name of the environment variable
	Default    string // replaces the value of a variable that is not set
	HasDefault bool   // reports whether there is a default, possibly empty
}

// Variables returns the environment variables that a text names, in order.
func Variables(text string) []Variable {
	var all []Variable
	scan := envScanner{text: text}
	for v, ok := scan.next(); ok; v, ok = scan.next() {
		all = append(all, v)
	}
	return all
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
func (s *envScanner) next() (v Variable, found bool) {
	for {
		i := strings.Index(s.text[s.at:], "${")
		if i < 0 {
			return v, false
		}
		v = Variable{Start: s.at + i}
		s.at = v.Start + 1
		name := v.Start + len("${")
		s.sign = nextOf(s.text, "}:", name, s.sign)
		if s.sign == name || s.sign == len(s.text) {
			continue
		}
		v.Name = s.text[name:s.sign]
		if s.text[s.sign] == '}' {
			v.End = s.sign + 1
			s.at = v.End
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
		v.Default, v.HasDefault, v.End = s.text[fallback:s.brace], true, s.brace+1
		s.at = v.End
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
	files, diags := readDotEnvs(folder)
	lookup = func(name string) (string, bool) {
		if value, found := process(name); found {
			return value, true
		}
		for _, file := range files {
			if value, found := file.values[name]; found {
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

// dotEnv is a .env file.
type dotEnv struct {
	path   string
	values map[string]string
}

// readDotEnvs reads the .env files in a folder and in the working directory.
func readDotEnvs(folder string) (files []dotEnv, diags diag.List) {
	seen := map[string]bool{}
	for _, dir := range []string{folder, "."} {
		path := filepath.Join(dir, ".env")
		id := identity(path)
		if seen[id] {
			continue
		}
		seen[id] = true
		values, found := readDotEnv(path)
		files = append(files, dotEnv{path, values})
		diags.Add(found...)
	}
	return files, diags
}

// SetVariable is an environment variable that is set for a document. It has no value, which
// may be secret.
type SetVariable struct {
	Name string // its name
	File string // the .env file that sets it; empty for the environment of the process
}

// SetVariables returns the environment variables that the document at path can use, the
// effective ones first. With Options.Lookup the names of the process are not known.
func SetVariables(path string, opts Options) []SetVariable {
	var all []SetVariable
	if opts.Lookup == nil {
		for _, entry := range os.Environ() {
			if name, _, _ := strings.Cut(entry, "="); name != "" {
				all = append(all, SetVariable{Name: name})
			}
		}
	}
	if opts.NoDotEnv {
		return all
	}
	files, _ := readDotEnvs(dotEnvFolder(path))
	for _, file := range files {
		for _, name := range slices.Sorted(maps.Keys(file.values)) {
			all = append(all, SetVariable{Name: name, File: file.path})
		}
	}
	return all
}

// dotEnvFolder returns the folder whose .env file belongs to the document at path.
func dotEnvFolder(path string) string {
	if _, remote := remotefs.Remote(path); remote {
		return "." // only a local document has a .env file in its folder
	}
	return filepath.Dir(remotefs.Path(path))
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
