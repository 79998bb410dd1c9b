package loader

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/joho/godotenv"

	"github.com/qtype-dev/qtype/diag"
	"github.com/qtype-dev/qtype/source"
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
	for {
		at := strings.Index(text, "${")
		if at < 0 {
			b.WriteString(text)
			return b.String(), unset
		}
		b.WriteString(text[:at])
		v, ok := parseVariable(text[at:])
		if !ok {
			b.WriteByte('$')
			text = text[at+1:]
			continue
		}
		value, found := lookup(v.name)
		switch {
		case found:
			b.WriteString(value)
		case v.hasDefault:
			b.WriteString(v.fallback)
		default:
			b.WriteString(text[at : at+v.length])
			unset = append(unset, v.name)
		}
		text = text[at+v.length:]
	}
}

// variable is one ${NAME:-default} of a text.
type variable struct {
	name       string
	fallback   string // the default
	hasDefault bool   // the default is there, be it empty
	length     int    // bytes from $ to }
}

// parseVariable reads the variable at the start of text, which starts with "${".
func parseVariable(text string) (variable, bool) {
	inner := text[2:]
	n := strings.IndexAny(inner, "}:")
	if n <= 0 {
		return variable{}, false
	}
	v := variable{name: inner[:n], length: 2 + n + 1}
	if inner[n] == '}' {
		return v, true
	}
	rest, isDefault := strings.CutPrefix(inner[n:], ":-")
	end := strings.IndexByte(rest, '}')
	if !isDefault || end < 0 {
		return variable{}, false
	}
	v.fallback, v.hasDefault = rest[:end], true
	v.length = 2 + n + 2 + end + 1
	return v, true
}

// maxDotEnv is the most bytes of a .env file.
const maxDotEnv = 1 << 20

// environment chains the process's environment and the .env files: beside the
// root document first, then in the working directory (reference language.md 3.2).
func environment(opts Options, folder string) (lookup func(string) (string, bool), faults diag.List) {
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
		if id := identity(path); hasScheme(dir) || seen[id] {
			continue
		} else {
			seen[id] = true
		}
		values, fault := readDotEnv(path)
		files = append(files, values)
		faults.Add(fault...)
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
	}, faults
}

// readDotEnv reads one .env file; none there is none read. Its content may be
// secret, so a fault names lines by number only.
func readDotEnv(path string) (map[string]string, diag.List) {
	info, err := os.Stat(path)
	if err != nil || info.IsDir() {
		return nil, nil
	}
	file := &source.File{Path: path}
	whole := source.Span{File: file}
	if !info.Mode().IsRegular() || info.Size() > maxDotEnv {
		return nil, diag.List{ruleDotEnv.At(whole, "%s is no regular file of at most %s and is left out", path, size(maxDotEnv))}
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
	values, faults := map[string]string{}, diag.List(nil)
	for i, line := range bytes.Split(text, []byte{'\n'}) {
		parsed, err := parseDotEnv(line)
		if err != nil {
			at := source.Span{File: file, Start: source.Pos{Line: i + 1, Column: 1}, End: source.Pos{Line: i + 1, Column: 2}}
			faults.Add(ruleDotEnv.At(at, "this line is not of the form NAME=value and is left out"))
		}
		for name, value := range parsed {
			values[name] = value
		}
	}
	return values, faults
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
