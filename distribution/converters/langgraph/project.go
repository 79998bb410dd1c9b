package langgraph

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
	"github.com/qtype-dev/qtype/internal/convert/pymodule"
	"github.com/qtype-dev/qtype/spec/source"
)

// Project converts the programs that a langgraph.json names. It returns nil if nothing can be
// converted.
func Project(r *input.Report, root *input.Node, read func(path string) (*source.File, error)) *document.App {
	if root.Kind != input.Map || root.Get("graphs") == nil {
		r.Malformed(root, `not a langgraph.json: it has no "graphs"`)
		return nil
	}
	r.CheckKeys(root, "the file", "graphs", "dependencies", "env", "python_version", "node_version", "image_distro", "pip_config_file", "dockerfile_lines", "store", "auth", "http", "checkpointer", "ui", "base_image", "$schema")
	root.Get("$schema").Use()
	r.Skip(root, "it describes where the program runs", "dependencies", "env", "python_version", "node_version", "image_distro", "pip_config_file", "dockerfile_lines", "base_image")
	var programs []Program
	graphs := r.Map(root, "graphs")
	if graphs == nil {
		return nil
	}
	for _, p := range graphs.Entries() {
		named := p.Value
		if named.Kind == input.Map {
			named = named.Get("path")
		}
		at, _, _ := strings.Cut(named.Scalar(), ":")
		at = filepath.ToSlash(filepath.Clean(filepath.FromSlash(at)))
		switch {
		case !filepath.IsLocal(filepath.FromSlash(at)) || filepath.Ext(at) != ".py":
			r.Malformed(p.Value, "graph %s: expected PATH.py:VARIABLE, with a path below the folder of the file", p.Key)
			continue
		case slices.ContainsFunc(programs, func(known Program) bool { return known.Module == pymodule.PathOf(at) }):
			continue
		}
		file, err := read(at)
		if err != nil {
			r.Malformed(p.Value, "graph %s: %s", p.Key, err)
			continue
		}
		programs = append(programs, Program{file, pymodule.PathOf(at)})
	}
	if len(programs) == 0 {
		return nil
	}
	return Convert(r, programs, true)
}
