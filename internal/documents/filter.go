package documents

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/spec"
)

// fileFilter selects files by their paths, which are relative to the folder that is read
// and have slashes.
type fileFilter struct {
	args    *spec.FileArgs
	exclude []*regexp.Regexp
}

// newFileFilter compiles the patterns of exclude. In a recursive reading, a pattern
// applies in every folder.
func newFileFilter(args *spec.FileArgs, recursive bool) (*fileFilter, error) {
	f := &fileFilter{args: args}
	for _, pattern := range args.Exclude {
		if recursive && !strings.HasPrefix(pattern, "**/") && !strings.HasPrefix(pattern, "/") {
			pattern = "**/" + pattern
		}
		compiled, err := compilePattern(strings.TrimPrefix(pattern, "/"))
		if err != nil {
			return nil, fmt.Errorf("exclude: %w", err)
		}
		f.exclude = append(f.exclude, compiled)
	}
	return f, nil
}

// rejectsFolder reports whether nothing in a folder is read.
func (f *fileFilter) rejectsFolder(rel string) bool {
	return f.args.ExcludeHidden && isHidden(path.Base(rel)) || f.excludes(rel)
}

// accepts reports whether a file is read.
func (f *fileFilter) accepts(rel string, size int64) bool {
	hidden := f.args.ExcludeHidden && slices.ContainsFunc(strings.Split(rel, "/"), isHidden)
	wrongExtension := f.args.RequiredExts != nil && !slices.Contains(f.args.RequiredExts, extension(rel))
	return !hidden && !wrongExtension && (size > 0 || !f.args.ExcludeEmpty) && !f.excludes(rel)
}

// extension returns the extension of a path; a name that only begins with a dot has none.
func extension(rel string) string { return path.Ext(strings.TrimLeft(path.Base(rel), ".")) }

// limit returns the first files, as many as num_files_limit.
func (f *fileFilter) limit(files []string) []string {
	if n := f.args.NumFilesLimit; n > 0 && n < len(files) {
		return files[:n]
	}
	return files
}

// excludes reports whether a pattern matches a path or one of the folders that it is in.
func (f *fileFilter) excludes(rel string) bool {
	for at := len(rel); at > 0; at = strings.LastIndexByte(rel[:at], '/') {
		if slices.ContainsFunc(f.exclude, func(p *regexp.Regexp) bool { return p.MatchString(rel[:at]) }) {
			return true
		}
	}
	return false
}

func isHidden(name string) bool { return strings.HasPrefix(name, ".") && name != "." && name != ".." }

// maxPattern is the length of a pattern, which limits the size of its regular expression.
const maxPattern = 1000

// compilePattern converts a pattern: * matches within a name, ** any number of folders,
// ? one character, [abc] one of several.
func compilePattern(pattern string) (*regexp.Regexp, error) {
	if len(pattern) > maxPattern {
		return nil, fmt.Errorf("a pattern has more than %d characters", maxPattern)
	}
	var b strings.Builder
	b.WriteString(`(?s)^`)
	parts := strings.Split(strings.TrimSuffix(pattern, "/"), "/")
	for i, part := range parts {
		last := i == len(parts)-1
		switch {
		case part == "**" && last:
			b.WriteString(`.+`)
			continue
		case part == "**":
			b.WriteString(`(?:[^/]+/)*`)
			continue
		}
		writePart(&b, part)
		if !last {
			b.WriteByte('/')
		}
	}
	b.WriteByte('$')
	compiled, err := regexp.Compile(b.String())
	if err != nil {
		return nil, fmt.Errorf("invalid pattern %q", pattern)
	}
	return compiled, nil
}

// writePart writes the regular expression of a part between slashes.
func writePart(b *strings.Builder, part string) {
	for i := 0; i < len(part); i++ {
		switch part[i] {
		case '*':
			b.WriteString(`[^/]*`)
		case '?':
			b.WriteString(`[^/]`)
		case '[':
			end := strings.IndexByte(part[i:], ']')
			if end < 2 {
				b.WriteString(`\[`)
				continue
			}
			set := part[i+1 : i+end]
			negated := strings.HasPrefix(set, "!")
			set = strings.NewReplacer(`\`, `\\`, "^", `\^`, "[", `\[`).Replace(strings.TrimPrefix(set, "!"))
			b.WriteByte('[')
			if negated {
				b.WriteByte('^')
			}
			b.WriteString(set + "]")
			i += end
		default:
			_, size := utf8.DecodeRuneInString(part[i:])
			b.WriteString(regexp.QuoteMeta(part[i : i+size]))
			i += size - 1
		}
	}
}
