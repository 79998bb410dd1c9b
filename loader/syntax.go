package loader

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// parse parses one YAML document. It returns nil if there is none, or an error.
func parse(file *source.File, pos *positions) (*yaml.Node, diag.List) {
	if found, ok := badCharacter(file); ok {
		return nil, diag.List{found}
	}
	in, err := NewYAML(file.Text)
	if err != nil {
		return nil, diag.List{syntaxDiagnostic(file, pos, err)}
	}
	var root yaml.Node
	if err := in.Load(&root); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, diag.List{syntaxDiagnostic(file, pos, err)}
	}
	var second yaml.Node
	if err := in.Load(&second); err == nil {
		return content(&root), diag.List{secondDocument(file, pos, &second)}
	} else if !errors.Is(err, io.EOF) {
		return content(&root), diag.List{syntaxDiagnostic(file, pos, err)}
	}
	return content(&root), nil
}

// content returns the value of a document.
func content(document *yaml.Node) *yaml.Node {
	if len(document.Content) == 0 {
		return nil
	}
	return document.Content[0]
}

// isEmpty reports whether a document is empty: only dashes.
func isEmpty(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Value == "" && n.Style == 0 }

// secondDocument reports the line of dashes that starts a second document.
func secondDocument(file *source.File, pos *positions, second *yaml.Node) diag.Diagnostic {
	start := pos.at(pos.offset(second.Line, second.Column))
	end := source.Pos{Line: start.Line, Column: start.Column + 3}
	return ruleSecondDocument.At(source.Span{File: file, Start: start, End: end},
		"a second document starts here").WithHint("only one document is allowed in a file")
}

// NewYAML returns the parser of documents. It reads every version 1 of YAML alike.
func NewYAML(text []byte) (*yaml.Loader, error) {
	return yaml.NewLoader(bytes.NewReader(maskDirective(text)), yaml.WithUniqueKeys(false))
}

// versionDirective matches the directive %YAML 1 before the first document.
var versionDirective = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:[ \t]*(?:#[^\n]*)?\r?\n)*(%)YAML 1\.\d+(?:\s|$)`)
})

// maskDirective turns that directive into a comment of the same length: the parser rejects versions that it could read.
func maskDirective(text []byte) []byte {
	if !bytes.Contains(text, []byte("%YAML")) {
		return text
	}
	at := versionDirective().FindSubmatchIndex(text)
	if at == nil {
		return text
	}
	masked := bytes.Clone(text)
	masked[at[2]] = '#'
	return masked
}

// badCharacter reports the first character that YAML does not allow. The parser would
// report no position for it.
func badCharacter(file *source.File) (diag.Diagnostic, bool) {
	i := bytes.IndexFunc(file.Text, func(r rune) bool {
		return r < 0x20 && r != '\t' && r != '\n' && r != '\r' || r >= 0x7f && r < 0xa0 && r != 0x85 || r == 0xfffe || r == 0xffff
	})
	if i < 0 {
		return diag.Diagnostic{}, false
	}
	r, _ := utf8.DecodeRune(file.Text[i:])
	start := newPositions(file.Text).at(i)
	end := source.Pos{Line: start.Line, Column: start.Column + 1}
	return ruleSyntax.At(source.Span{File: file, Start: start, End: end}, "the control character U+%04X is not allowed in YAML", r).
		WithHint(`write it as "\x%02x" inside double quotes`, r), true
}

// syntaxDiagnostic converts an error of the parser.
func syntaxDiagnostic(file *source.File, pos *positions, err error) diag.Diagnostic {
	var at *yaml.LoadError
	if !errors.As(err, &at) {
		return ruleSyntax.At(pointAt(file, source.Pos{Line: 1, Column: 1}), "this text cannot be read as YAML")
	}
	start := source.Pos{Line: 1, Column: 1}
	if at.Mark.Line > 0 {
		start = pos.at(pos.offset(at.Mark.Line, at.Mark.Column))
	}
	span := pointAt(file, start)
	if strings.HasPrefix(at.Message, "exceeded max depth") {
		return ruleLimit.At(span, "values are nested too deeply")
	}
	if strings.HasSuffix(at.ContextMsg, "quoted scalar") && strings.Contains(at.Message, "unexpected") {
		// The parser reports the end of the text; the opening quote is more helpful.
		span = pointAt(file, pos.at(pos.offset(at.ContextMark.Line, at.ContextMark.Column)))
		return ruleSyntax.At(span, "a quoted text is not closed").WithHint("the opening quote is here")
	}
	if found, ok := causeOf(file.Text, pos, at); ok {
		return ruleSyntax.At(pointAt(file, pos.at(found.offset)), "%s", found.message).WithHint("%s", found.hint)
	}
	message, hint := explainSyntax(at.ContextMsg, at.Message, charAt(file.Text, pos.offset(at.Mark.Line, at.Mark.Column)))
	found := ruleSyntax.At(span, "%s", message)
	found.Hint = hint
	if at.ContextMark.Line > 0 && at.ContextMark.Line != at.Mark.Line {
		if what, ok := opened[at.ContextMsg]; ok {
			found = found.WithRelated(pointAt(file, pos.at(pos.offset(at.ContextMark.Line, at.ContextMark.Column))), what+" starts here")
		}
	}
	return found
}

func pointAt(file *source.File, start source.Pos) source.Span {
	return source.Span{File: file, Start: start, End: source.Pos{Line: start.Line, Column: start.Column + 1}}
}

func charAt(text []byte, offset int) rune {
	if offset >= len(text) {
		return 0
	}
	r, _ := utf8.DecodeRune(text[offset:])
	return r
}

// opened names what the parser was parsing when it failed.
var opened = map[string]string{
	"while parsing a flow sequence":    "the list",
	"while parsing a flow mapping":     "the mapping",
	"while parsing a block collection": "the list",
	"while parsing a block mapping":    "the mapping",
}

// explanation is a message for an error of the parser.
type explanation struct {
	part    string // a part of the parser's message, after its context
	message string
	hint    string
}

// explanations are tried in order. The texts on the left are the parser's.
var explanations = []explanation{
	{"mapping values are not allowed", "a key and value are not allowed here", `check the indentation; a text that contains ": " needs quotes`},
	{"block sequence entries are not allowed", "a list item is not allowed here", `start "- " on a new line`},
	{"mapping keys are not allowed", "a key is not allowed here", "check the indentation"},
	{"found unknown escape character", "this escape is unknown", `write \\ for a backslash, or use single quotes`},
	{"did not find expected hexadecimal", "this escape needs hexadecimal digits", `write \\ for a backslash, or use single quotes`},
	{"invalid Unicode character escape", "this escape is not a valid character", ""},
	{"flow sequence: did not find expected ',' or ']'", "the list in brackets is not continued or closed", `"," or "]" is expected; a text that holds brackets or braces needs quotes`},
	{"flow mapping: did not find expected ',' or '}'", "the mapping in braces is not continued or closed", `"," or "}" is expected; a text that holds brackets or braces needs quotes`},
	{"did not find expected '-' indicator", "this does not belong to the list before it", `a list item that starts with "- " is expected, or a smaller indentation`},
	{"did not find expected key", "this does not belong to the mapping before it", "check the indentation and the quotes before"},
	{"could not find expected ':'", "a key without a value", `":" is expected; check the indentation and the quotes before`},
	{"tab character", "the indentation contains a tab", "indent with spaces"},
	{"tabs where space", "the indentation contains a tab", "indent with spaces"},
	{"mixed spaces and tabs", "the indentation contains a tab", "indent with spaces"},
	{"indentation", "the indentation is wrong here", ""},
	{"unknown anchor", "", "anchors are written &name, earlier in the same file"},
	{"undefined tag handle", "this tag is unknown", "a text that starts with ! needs quotes"},
	{"<document start>", "something follows the end of the document", "check the indentation"},
	{"content after document-end", "something follows the end of the document", ""},
	{"did not find expected node content", "a value is expected here", "check the brackets and braces; a text that holds them needs quotes"},
	{"scanning a tag", "this tag cannot be read", "a text that starts with ! needs quotes"},
	{"parsing a tag", "this tag cannot be read", "a text that starts with ! needs quotes"},
	{"scanning an alias", "this alias cannot be read", "a text that starts with * needs quotes"},
	{"scanning an anchor", "this anchor cannot be read", "a text that starts with & needs quotes"},
	{"incompatible YAML document", "this version of YAML is unknown", "write %YAML 1.2, or remove the line"},
	{"directive", "this directive is unknown", "a text that starts with % needs quotes"},
	{"block scalar", "the head of this block of text is wrong", `write | or > alone on the line`},
	{"comment", "a comment needs a space before #", ""},
	{"excessive aliasing", "aliases add too much", ""},
}

// explainSyntax returns the message and the hint for an error of the parser.
func explainSyntax(context, message string, char rune) (text, hint string) {
	if strings.HasPrefix(message, "found character that cannot start") {
		switch char {
		case '\t':
			return "the indentation contains a tab", "indent with spaces"
		default:
			return fmt.Sprintf("a value cannot start with %q", char), "put the text in quotes"
		}
	}
	if name, ok := strings.CutPrefix(message, "unknown anchor '"); ok {
		return fmt.Sprintf("the alias *%s has no anchor", strings.TrimSuffix(name, "' referenced")), "anchors are written &name, earlier in the same file"
	}
	full := context + ": " + message
	for _, e := range explanations {
		if strings.Contains(full, e.part) {
			return e.message, e.hint
		}
	}
	return "this cannot be read as YAML", "check the indentation and the quotes before"
}

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
