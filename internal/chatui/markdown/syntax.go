package markdown

import (
	"strings"
	"unicode/utf8"
)

// syntax is what the highlighter knows of a language: not its grammar, only where comments,
// texts in quotes, numbers and keywords are.
type syntax struct {
	names    string   // after the mark of a code block, in lower case
	comments string   // what begins a comment to the end of the line
	blocks   []string // pairs: what begins and ends a comment of several lines
	quotes   string   // the characters around a text of one line
	texts    []string // pairs: what begins and ends a text of several lines
	anyCase  bool     // keywords are also written in upper case
	keywords string
}

// The keywords that languages have in common.
const (
	keywordsOfC = "break case char const continue default do double else enum false float for goto if int long return short signed sizeof static struct switch true unsigned void volatile while "
	keywordsJS  = "async await break case catch class const continue default delete do else export extends false finally for from function if import in instanceof let new null of return static super switch this throw true try typeof undefined var void while yield "
	keywordsJVM = "abstract boolean break case catch class continue default do double else enum extends false final finally float for if implements import instanceof int interface long new null package private protected public return static super switch this throw throws true try var void while "
)

var commentOfC = []string{"/*", "*/"}

// syntaxes is the table of the languages whose code blocks have colors.
var syntaxes = []syntax{
	{names: "go golang", comments: "//", blocks: commentOfC, quotes: `"'`, texts: []string{"`", "`"},
		keywords: "any bool break byte case chan const continue default defer else error fallthrough false float64 for func go goto if import int int64 interface iota map nil package range return rune select string struct switch true type var"},
	{names: "python py python3", comments: "#", quotes: `"'`, texts: []string{`"""`, `"""`, `'''`, `'''`},
		keywords: "and as assert async await break class continue def del elif else except False finally for from global if import in is lambda None nonlocal not or pass raise return True try while with yield"},
	{names: "javascript js jsx mjs node", comments: "//", blocks: commentOfC, quotes: `"'`, texts: []string{"`", "`"}, keywords: keywordsJS},
	{names: "typescript ts tsx", comments: "//", blocks: commentOfC, quotes: `"'`, texts: []string{"`", "`"},
		keywords: keywordsJS + "any as boolean declare enum implements interface keyof namespace never number private protected public readonly string type unknown"},
	{names: "java", comments: "//", blocks: commentOfC, quotes: `"'`, texts: []string{`"""`, `"""`}, keywords: keywordsJVM + "record sealed synchronized transient"},
	{names: "kotlin kt", comments: "//", blocks: commentOfC, quotes: `"'`, texts: []string{`"""`, `"""`}, keywords: keywordsJVM + "as by companion data fun in is object override suspend val when"},
	{names: "c h", comments: "//", blocks: commentOfC, quotes: `"'`, keywords: keywordsOfC + "extern register typedef union"},
	{names: "cpp c++ cc hpp", comments: "//", blocks: commentOfC, quotes: `"'`,
		keywords: keywordsOfC + "auto bool catch class constexpr delete namespace new nullptr operator override private protected public template this throw try typename using virtual"},
	{names: "csharp cs c#", comments: "//", blocks: commentOfC, quotes: `"'`, texts: []string{`"""`, `"""`},
		keywords: keywordsJVM + "as async await bool const decimal foreach get in internal is namespace object out override readonly ref sealed set string struct using virtual"},
	{names: "rust rs", comments: "//", blocks: commentOfC, quotes: `"`,
		keywords: "as async await bool break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return Self self static str struct super trait true type unsafe use usize where while"},
	{names: "swift", comments: "//", blocks: commentOfC, quotes: `"`, texts: []string{`"""`, `"""`},
		keywords: "as async await break case catch class continue default defer do else enum extension false for func guard if import in init is let nil private protocol public return self static struct switch throw throws true try var where while"},
	{names: "ruby rb", comments: "#", quotes: `"'`,
		keywords: "and begin break case class def do else elsif end ensure false for if in module next nil not or redo require rescue retry return self super then true unless until when while yield"},
	{names: "php", comments: "// #", blocks: commentOfC, quotes: `"'`,
		keywords: "abstract array as break case catch class const continue default echo else elseif extends false final finally fn for foreach function if implements interface namespace new null private protected public return static switch throw true try use var while"},
	{names: "sh bash shell zsh console", comments: "#", quotes: `"'`,
		keywords: "break case cd continue do done echo elif else esac exit export fi for function if in local read return set then until while"},
	{names: "powershell ps1 pwsh", comments: "#", blocks: []string{"<#", "#>"}, quotes: `"'`, anyCase: true,
		keywords: "catch else elseif finally for foreach function if in param return switch throw try while"},
	{names: "sql postgresql postgres mysql sqlite", comments: "--", blocks: commentOfC, quotes: `'"`, anyCase: true,
		keywords: "add alter and as asc between by case constraint create default delete desc distinct drop else end exists false foreign from full group having if in index inner insert into is join key left like limit not null offset on or order outer primary references returning right select set table then true union unique update using values view when where with"},
	{names: "json jsonc json5 jsonl", comments: "//", blocks: commentOfC, quotes: `"`, keywords: "true false null"},
	{names: "yaml yml", comments: "#", quotes: `"'`, keywords: "true false null"},
	{names: "toml ini dotenv env properties", comments: "# ;", quotes: `"'`, texts: []string{`"""`, `"""`, `'''`, `'''`}, keywords: "true false"},
	{names: "dockerfile docker", comments: "#", quotes: `"'`, keywords: "ADD ARG AS CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK LABEL RUN SHELL USER VOLUME WORKDIR"},
	{names: "makefile make", comments: "#", quotes: `"'`, keywords: "define else endef endif export ifdef ifeq ifndef ifneq include"},
	{names: "html xml svg", blocks: []string{"<!--", "-->"}, quotes: `"`},
	{names: "css scss less", blocks: commentOfC, quotes: `"'`},
	{names: "lua", comments: "--", blocks: []string{"--[[", "]]"}, quotes: `"'`, texts: []string{"[[", "]]"},
		keywords: "and break do else elseif end false for function goto if in local nil not or repeat return then true until while"},
	{names: "r", comments: "#", quotes: `"'`, keywords: "break else FALSE for function if in library NA next NULL repeat return TRUE while"},
	{names: "hcl terraform tf", comments: "# //", blocks: commentOfC, quotes: `"`, keywords: "data false for in locals module null output provider resource terraform true variable"},
}

// syntaxOf returns the syntax that the info string of a code block names; nil if it is not known.
func syntaxOf(info string) *syntax {
	name, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(info)), " ")
	name = strings.Trim(name, "{}.")
	for i := range syntaxes {
		if name != "" && contains(syntaxes[i].names, name) {
			return &syntaxes[i]
		}
	}
	return nil
}

// contains reports whether a list, separated by spaces, has a word.
func contains(list, word string) bool {
	for one := range strings.FieldsSeq(list) {
		if one == word {
			return true
		}
	}
	return false
}

// highlighter colors the lines of one code block, in order.
type highlighter struct {
	*syntax
	until string // what ends the comment or text that is open at the end of the line
	style style  // of what is open
}

// line returns the spans of a line.
func (h *highlighter) line(text string) []span {
	var spans []span
	add := func(n int, s style) {
		if last := len(spans) - 1; last >= 0 && spans[last].style == s {
			spans[last].text += text[:n]
		} else if n > 0 {
			spans = append(spans, span{text[:n], s})
		}
		text = text[n:]
	}
	space := true // before the text, or its beginning
	for text != "" {
		n, s := h.next(text, space)
		space = text[n-1] == ' ' || text[n-1] == '\t'
		add(n, s)
	}
	return spans
}

// next returns the length and the style of the token that a text begins with. space is
// whether it is at the beginning of the line or after a space.
func (h *highlighter) next(text string, space bool) (int, style) {
	if h.until != "" {
		return h.rest(text, 0)
	}
	for _, multi := range []struct {
		pairs []string
		style style
	}{{h.blocks, dim}, {h.texts, quoted}} {
		for i := 0; i < len(multi.pairs); i += 2 {
			if strings.HasPrefix(text, multi.pairs[i]) {
				h.until, h.style = multi.pairs[i+1], multi.style
				return h.rest(text, len(multi.pairs[i]))
			}
		}
	}
	for mark := range strings.FieldsSeq(h.comments) {
		if strings.HasPrefix(text, mark) && (space || len(mark) > 1) {
			return len(text), dim
		}
	}
	if strings.IndexByte(h.quotes, text[0]) >= 0 {
		if n := quotedLength(text); n > 0 {
			return n, quoted
		}
	}
	return h.word(text)
}

// rest returns the length of the rest of what is open, which it closes where it ends.
func (h *highlighter) rest(text string, from int) (int, style) {
	if i := strings.Index(text[from:], h.until); i >= 0 {
		from += i + len(h.until)
		h.until = ""
		return from, h.style
	}
	return len(text), h.style
}

// quotedLength returns the length of the text in quotes at the beginning; 0 if it does not end.
func quotedLength(text string) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case text[0]:
			return i + 1
		}
	}
	return 0
}

// stringPrefixes are the letters that languages write before a text in quotes.
const stringPrefixes = "rbfuRBFUL"

// word returns the length and the style of a word, a number or one character.
func (h *highlighter) word(text string) (int, style) {
	n := 0
	for n < len(text) && isWordByte(text[n]) {
		n++
	}
	switch {
	case n == 0:
		_, n = utf8.DecodeRuneInString(text)
		return n, 0
	case text[0] >= '0' && text[0] <= '9':
		for n < len(text) && (isWordByte(text[n]) || text[n] == '.') {
			n++
		}
		return n, number
	case contains(h.keywords, text[:n]) || h.anyCase && contains(h.keywords, strings.ToLower(text[:n])):
		return n, accent
	}
	if n+1 < len(text) && text[n] == '\'' && isWordByte(text[n+1]) && strings.Trim(text[:n], stringPrefixes) != "" {
		n++ // the apostrophe of a word, such as don't
	}
	return n, 0
}

// isWordByte reports whether a byte is part of a word. All characters beyond ASCII are.
func isWordByte(b byte) bool {
	return b == '_' || b >= utf8.RuneSelf || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}
