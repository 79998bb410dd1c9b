package spec

import (
	"fmt"
	"strings"
	"unicode"
)

// Conflicts returns the values of the tool that are not names of Python. The validator reports
// them, and a run refuses the tool.
func (t *PythonFunctionTool) Conflicts() []Conflict {
	var all []Conflict
	if !IsPythonPath(t.ModulePath) {
		all = append(all, Conflict{Key: "module_path", Problem: fmt.Sprintf("module_path %q is not the name of a Python module", t.ModulePath)})
	}
	if !IsPythonPath(t.FunctionName) || strings.Contains(t.FunctionName, ".") {
		all = append(all, Conflict{Key: "function_name", Problem: fmt.Sprintf("function_name %q is not the name of a Python function", t.FunctionName)})
	}
	return all
}

// IsPythonPath reports whether a text is a name of Python, or several with dots between
// them, as the path of a module.
func IsPythonPath(path string) bool {
	for name := range strings.SplitSeq(path, ".") {
		if name == "" || unicode.IsDigit(rune(name[0])) || strings.ContainsFunc(name, func(r rune) bool {
			return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
		}) {
			return false
		}
	}
	return true
}
