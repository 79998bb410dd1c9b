package loader

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// cause is what a line has that explains a later error of the parser.
type cause struct {
	offset  int // where it is in the text
	message string
	hint    string
}

// causeOf finds the cause of an error of the parser in the lines from the start of what it
// was parsing to the error.
func causeOf(text []byte, pos *positions, err *yaml.LoadError) (cause, bool) {
	at := pos.offset(err.Mark.Line, err.Mark.Column)
	if found, ok := oddSpace(text, lineStart(text, max(0, lineStart(text, at)-1)), at); ok {
		return found, true
	}
	if mark := conflictMark().FindIndex(text); mark != nil {
		sign := text[mark[0] : mark[0]+len("<<<<<<<")]
		return cause{mark[0], fmt.Sprintf("%s is a mark of a merge conflict", sign), "keep one of the versions, and remove the lines of <<<<<<<, ======= and >>>>>>>"}, true
	}
	switch {
	case strings.Contains(err.Message, "could not find expected ':'"):
		return incompleteKey(text, pos.offset(err.ContextMark.Line, err.ContextMark.Column))
	case strings.Contains(err.Message, "mapping values are not allowed"):
		if found, ok := dashWithoutSpace(text, at); ok {
			return found, true
		}
		return keyWithoutColon(text, at)
	case strings.Contains(err.Message, "did not find expected key"), strings.Contains(err.Message, "did not find expected '-' indicator"):
		return afterValue(text, at)
	}
	return cause{}, false
}

func lineStart(text []byte, at int) int { return bytes.LastIndexByte(text[:at], '\n') + 1 }

// lineAt returns the text of a line from an offset to its end.
func lineAt(text []byte, at int) string {
	line, _, _ := strings.Cut(string(text[at:]), "\n")
	return strings.TrimSuffix(line, "\r")
}

// oddSpaces are characters that look like a space or like nothing.
const oddSpaces = "\u00a0\u2007\u202f\u3000\u200b\ufeff"

// oddSpace finds such a character where YAML needs a space: in the indentation or after a
// colon or dash. Texts that are copied from web pages have them.
func oddSpace(text []byte, from, to int) (cause, bool) {
	before := byte('\n')
	for i := from; i < min(to+1, len(text)); {
		r, n := utf8.DecodeRune(text[i:])
		switch {
		case strings.ContainsRune(oddSpaces, r) && strings.IndexByte("\n:-", before) >= 0:
			return cause{i, fmt.Sprintf("the character U+%04X is not a space in YAML", r), "replace it with a space"}, true
		case r != ' ' || before != '\n':
			before = text[i]
		}
		i += n
	}
	return cause{}, false
}

// keyWithoutSpace matches a key that is followed by its value without a space.
var keyWithoutSpace = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([\w.-]+)[:：](\S.*)$`) })

// incompleteKey explains a line that starts with a key but has no colon and space after it.
func incompleteKey(text []byte, at int) (cause, bool) {
	line := lineAt(text, at)
	if m := keyWithoutSpace().FindStringSubmatch(line); m != nil {
		return cause{at + len(m[1]), "a colon needs a space after it", "write " + m[1] + ": …"}, true // the value may be secret
	}
	if !bytes.ContainsAny([]byte(line), `"'{}[]`) && strings.TrimSpace(line) != "" {
		return cause{at, "a key without a value", `":" is expected after it; check the indentation and the quotes before`}, true
	}
	return cause{}, false
}

// itemWithoutSpace matches a list item whose dash has no space after it.
var itemWithoutSpace = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^( *)-([A-Za-z_][\w-]*):(\s|$)`) })

// dashWithoutSpace explains a key that follows "-type: Model": without a space, the dash is a
// part of the key.
func dashWithoutSpace(text []byte, at int) (cause, bool) {
	if start := lineStart(text, at); start > 0 {
		before := lineStart(text, start-1)
		if m := itemWithoutSpace().FindStringSubmatch(lineAt(text, before)); m != nil {
			return cause{before + len(m[1]), "a dash needs a space after it", "write - " + m[2]}, true
		}
	}
	return cause{}, false
}

// conflictMark matches the first mark of a merge conflict of git, also of one that was removed in part.
var conflictMark = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^(?:(?:<{7}|>{7}|\|{7})(?: |\r?$)|={7}\r?$)`) })

// loneWord matches a line with a word only, with or without a dash.
var loneWord = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^( *(?:- +)?)([A-Za-z_][\w-]*)\s*$`) })

// keyWithoutColon explains a key or item after a line with one word: without its colon, that key is a text that
// continues. A line that continues the text of the line before it is no key.
func keyWithoutColon(text []byte, at int) (cause, bool) {
	start := lineStart(text, at)
	if start == 0 {
		return cause{}, false
	}
	word := lineStart(text, start-1)
	m := loneWord().FindStringSubmatch(lineAt(text, word))
	if m == nil {
		return cause{}, false
	}
	if word > 0 {
		before := lineAt(text, lineStart(text, word-1))
		if indent := len(before) - len(strings.TrimLeft(before, " ")); indent < len(m[1]) && !strings.HasSuffix(strings.TrimSpace(before), ":") {
			return cause{}, false
		}
	}
	return cause{word + len(m[1]), "a key needs a colon", "write " + m[2] + ":"}, true
}

// afterValue explains what follows a value that has ended: a bracket too many, or the rest
// of a text that starts with a bracket or a quoted part.
func afterValue(text []byte, at int) (cause, bool) {
	if at >= len(text) {
		return cause{}, false
	}
	if c := text[at]; c == '}' || c == ']' {
		return cause{at, fmt.Sprintf("there is nothing open that %q closes", string(c)), "remove it, or put the text in quotes"}, true
	}
	before := bytes.TrimRight(text[lineStart(text, at):at], " \t")
	if len(before) == 0 {
		return cause{}, false
	}
	switch before[len(before)-1] {
	case '}', ']':
		return cause{at, "the value in brackets or braces has ended before this", "put a text that starts with a bracket or a brace in quotes"}, true
	case '\'':
		return cause{at, "the quoted text has ended before this", "write '' for an apostrophe in single quotes"}, true
	case '"':
		return cause{at, "the quoted text has ended before this", `write \" for a quote in double quotes, or put the whole text in quotes`}, true
	}
	return cause{}, false
}
