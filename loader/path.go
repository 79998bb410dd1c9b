package loader

import (
	"errors"
	"strings"

	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/spec"
)

// checkPath checks the constant path of a step that reads or writes a file by the functions
// that a run uses. A scheme that only another build has is left to the run.
func (d *decoder) checkPath(n *node, s spec.Step) {
	file, ok := s.(spec.FileStep)
	if !ok {
		return
	}
	path, writes := file.FilePath()
	usable := remotefs.Readable
	if writes {
		usable = remotefs.Writable
	}
	uri := uriOf(n)
	if uri == nil || uri.kind != text || uri.unset || strings.Contains(path.URI, "${") {
		return
	}
	if strings.TrimSpace(path.URI) == "" {
		d.diags.add(ruleKind.At(uri.span, "%q is empty", "path.uri").WithHint("give it the path of a file"))
		return
	}
	problem := ""
	err := usable(path.URI)
	reason, explained := errors.AsType[interface {
		error
		Reason() string
	}](err)
	switch _, ofBuild := errors.AsType[*remotefs.BuildTagError](err); {
	case ofBuild:
	case explained:
		problem = reason.Reason()
	case writes:
		problem = spec.UnwritableFile(path.URI)
	}
	if problem != "" {
		d.diags.add(ruleKind.At(uri.span, "\"path.uri\" cannot be %q: %s", uri.shown(), problem))
	}
}

// uriOf returns the value of uri in the path of a step; nil if there is none.
func uriOf(step *node) *node {
	if path := step.get("path"); path != nil && path.kind == mapping {
		return path.get("uri")
	}
	return nil
}
