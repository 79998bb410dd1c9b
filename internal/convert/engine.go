package convert

import "strings"

// readFunctions keeps the workflow's functions that are expressions. It tells
// whether all of them are.
func (w *workflow) readFunctions() bool {
	all := w.root.get("functions")
	if all == nil || all.form != list {
		return false
	}
	w.defined = map[string]string{}
	only := true
	for _, n := range all.items {
		operation := n.get("operation").name()
		if n.form != mapping || foldCase(n.get("type").name()) != "expression" || operation == "" {
			only = false
			continue
		}
		w.known(n, "a function", "name", "operation", "type", "metadata")
		if tpl := readTemplate(strings.TrimSpace(operation)); len(tpl.parts) == 1 {
			operation = tpl.parts[0].text
		}
		w.defined[n.get("name").name()] = operation
	}
	return only
}

// constants are the workflow's, as expressions read them behind $CONST.
func constants(n *node) *translatedExpr {
	switch n.form {
	case mapping:
		return &translatedExpr{member: func(name string) (*translatedExpr, error) {
			v := n.get(name)
			if v == nil {
				return nil, unsupportedJQ("."+name, "the workflow has no constant %q", name)
			}
			c := constants(v)
			if c == nil {
				return nil, unsupportedJQ("."+name, "the constant %q is a list that no expression can hold", name)
			}
			return c, nil
		}}
	case list:
		elem := &inferredType{}
		var items []string
		for _, item := range n.items {
			c := constants(item)
			if c == nil || c.member != nil || c.of.sort == isList {
				return nil
			}
			joined, ok := join(elem, c.of)
			if !ok {
				return nil
			}
			elem = joined
			items = append(items, c.text)
		}
		return &translatedExpr{text: "[" + strings.Join(items, ", ") + "]", prec: precAtom, of: &inferredType{sort: isList, declared: true, elem: elem}}
	}
	c, err := scalarCode(n)
	if err != nil {
		return nil
	}
	return c
}
