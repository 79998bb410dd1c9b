package spec

import (
	"fmt"
	"strings"
	"unicode"
)

// Conflict returns the first key of the tool that is not a name of Python, and what is wrong
// with it; both are empty if there is none. The validator reports it, and a run refuses it.
func (t *PythonFunctionTool) Conflict() (key, problem string) {
	switch {
	case !IsPythonPath(t.ModulePath):
		return "module_path", fmt.Sprintf("module_path %q is not the name of a Python module", t.ModulePath)
	case !IsPythonPath(t.FunctionName) || strings.Contains(t.FunctionName, "."):
		return "function_name", fmt.Sprintf("function_name %q is not the name of a Python function", t.FunctionName)
	}
	return "", ""
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
