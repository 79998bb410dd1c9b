package loader

import (
	"errors"
	"strings"

	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/trust"
	"github.com/qtype-dev/qtype/spec"
)

// checkPath checks the constant path and the base of a step that reads or writes a file,
// with the functions of a run.
func (d *decoder) checkPath(n *node, s spec.Step) {
	file, ok := s.(spec.FileStep)
	if !ok {
		return
	}
	path, base, writes := file.FilePath()
	usable := remotefs.Readable
	if writes {
		usable = remotefs.Writable
	}
	if at := n.get("base"); isDecidedText(at) && trust.IsAddress(base) {
		d.reportPath(at, "base", addressProblem(usable(trust.Below(base, "file"))))
	}
	uri := uriOf(n)
	switch {
	case !isDecidedText(uri):
	case strings.TrimSpace(path.URI) == "":
		d.diags.add(ruleKind.At(uri.span, "%q is empty", "path.uri").WithHint("give it the path of a file"))
	default:
		problem := addressProblem(usable(path.URI))
		if problem == "" && writes {
			problem = spec.UnwritableFile(path.URI)
		}
		d.reportPath(uri, "path.uri", problem)
	}
}

func (d *decoder) reportPath(at *node, key, problem string) {
	if problem != "" {
		if strings.Contains(at.source, "://") {
			hideValue(at) // an address may have a password
		}
		d.diags.add(ruleKind.At(at.span, "%q cannot be %q: %s", key, remotefs.Redacted(at.shown()), problem))
	}
}

// isDecidedText reports whether a value is a text without environment variables that are not
// set.
func isDecidedText(n *node) bool { return n != nil && n.kind == text && !n.unset }

// addressProblem returns why an address cannot be used; empty if it can.
func addressProblem(err error) string {
	reason, ok := errors.AsType[interface {
		error
		Reason() string
	}](err)
	if !ok {
		return ""
	}
	return reason.Reason()
}

// uriOf returns the value of uri in the path of a step; nil if there is none.
func uriOf(step *node) *node {
	if path := step.get("path"); path != nil && path.kind == mapping {
		return path.get("uri")
	}
	return nil
}
