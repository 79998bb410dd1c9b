package loader

import "github.com/qtype-dev/qtype/internal/modelparams"

// typeVariables gives values of parameters of models the type of their text: those that are one
// unquoted environment variable, where the parameter is a number or a boolean.
func (n *node) typeVariables() {
	for i, p := range n.pairs {
		switch v := p.value; {
		case v.kind == mapping:
			v.typeVariables()
		case v.kind == text && v.bare && !v.unset && isOneVariable(v.source):
			is := resolve11(v.text)
			if (is == integer || is == float) && modelparams.IsNumber(p.key.text) || is == boolean && modelparams.IsBoolean(p.key.text) {
				typed := *v // an alias elsewhere keeps the text
				typed.kind = is
				n.pairs[i].value = &typed
			}
		}
	}
}

// isOneVariable reports whether a text is a variable and nothing else.
func isOneVariable(text string) bool {
	scan := envScanner{text: text}
	v, found := scan.next()
	return found && v.Start == 0 && v.End == len(text)
}
