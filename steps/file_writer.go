package steps

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/records"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/trust"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// fileWriter writes rows to files, in the format of the file's name. A file appears
// under its name when it is complete. Later batches for the same path go to numbered
// files next to it: out.csv, out-2.csv.
type fileWriter struct {
	id      string
	path    filePath
	columns []slot // the variables to write
	all     bool   // no inputs are declared: only variables that a row has set are written
	out     *slot  // the path is written to it; nil for none
	size    int
	csvSafe bool            // texts that spreadsheets take for formulas get an apostrophe
	parts   map[string]int  // the number of the last file of each path, by what identifies it
	written map[string]bool // what identifies all files that were written
}

func buildFileWriter(s *spec.FileWriter, env *Env) (Runner, error) {
	w := &fileWriter{id: s.ID, csvSafe: s.CSVSafe, size: batchSize(s.Batched), parts: map[string]int{}, written: map[string]bool{}}
	var err error
	if w.path, err = env.filePath(s.Path, s.Base, remotefs.Writable); err != nil {
		return nil, err
	}
	w.path.writes = true
	if w.path.variable == nil {
		if err := records.Writable(w.path.constant); err != nil {
			return nil, err
		}
	}
	if w.columns, err = env.slots(s.Inputs); err != nil {
		return nil, err
	}
	if w.all = len(w.columns) == 0; w.all {
		if w.columns = env.allVariables(); len(w.columns) == 0 {
			return nil, errors.New("needs inputs: the variables to write")
		}
	}
	if len(s.Outputs) > 0 {
		out, err := env.slot(s.Outputs[0].To)
		if err != nil {
			return nil, err
		}
		w.out = &out
	}
	return w, nil
}

// allVariables lists the variables of the flow in the order of their slots.
func (e *Env) allVariables() []slot {
	vars, ok := e.Slots.(Variables)
	if !ok {
		return nil
	}
	var all []slot
	for i, v := range vars.Variables() {
		all = append(all, slot{i, v})
	}
	return all
}

// Size returns the maximum number of rows in a file; 0 means all.
func (w *fileWriter) Size() int { return w.size }

// Batch writes one file for each path of the rows, in the order of the paths, and emits
// one row for each file with the values that its rows share and the path. A file that
// cannot be written fails its rows.
func (w *fileWriter) Batch(ctx context.Context, rows []*Row, emit Emit) error {
	var files []writtenPart
	if err := w.batch(ctx, rows, &files, emit); err != nil { // all rows are processed again, or have failed
		for _, f := range slices.Backward(files) {
			w.parts[f.path] = f.before
			delete(w.written, f.part)
		}
		return err
	}
	return nil
}

// writtenPart is a file that a batch has written: what identifies its path and the file, and the number of the last
// file of the path before it.
type writtenPart struct {
	path, part string
	before     int
}

func (w *fileWriter) batch(ctx context.Context, rows []*Row, files *[]writtenPart, emit Emit) error {
	groups := map[string][]*Row{}
	names := map[string]string{} // the first name of each file
	for _, row := range rows {
		path, err := w.path.of(ctx, row)
		if err == nil {
			file := identityOf(path)
			if names[file] == "" {
				names[file] = path
			}
			groups[names[file]] = append(groups[names[file]], row)
			continue
		}
		if err := emitFailed(row, w.id, err, emit); err != nil {
			return err
		}
	}
	paths := make([]string, 0, len(groups))
	for path := range groups {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	for _, path := range paths {
		part, err := w.group(ctx, path, groups[path], emit)
		if part != nil {
			*files = append(*files, *part)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// group writes the rows of one path, and returns the file; nil if there is none.
func (w *fileWriter) group(ctx context.Context, path string, rows []*Row, emit Emit) (*writtenPart, error) {
	n := w.parts[identityOf(path)] + 1
	for w.written[identityOf(partName(path, n))] { // the path of other rows is that of a numbered file
		n++
	}
	part := partName(path, n)
	written, err := w.write(ctx, part, rows, emit)
	switch {
	case errors.Is(err, errStop):
		return nil, err
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		for _, row := range rows {
			if row.Err == nil {
				if err := emitFailed(row, w.id, err, emit); err != nil {
					return nil, err
				}
			}
		}
		return nil, nil
	case len(written) == 0:
		return nil, nil
	}
	file := &writtenPart{path: identityOf(path), part: identityOf(part), before: w.parts[identityOf(path)]}
	w.parts[file.path], w.written[file.part] = n, true
	out := commonValues(written)
	if w.out != nil {
		w.out.write(out, part)
	}
	return file, emit(out)
}

// identityOf returns what two names of one file have in common, such as a.csv and ./a.csv.
func identityOf(path string) string {
	if _, remote := remotefs.Remote(path); remote {
		return path
	}
	if abs, err := filepath.Abs(remotefs.Path(path)); err == nil {
		return abs
	}
	return path
}

// partName returns the name of the n-th file for a path, counted from 1: the number is
// before the extensions of the format and the compression.
func partName(path string, n int) string {
	if n == 1 {
		return path
	}
	packing := ""
	switch ext := filepath.Ext(path); strings.ToLower(ext) {
	case ".gz", ".zst", ".zstd":
		packing = ext
	}
	bare := strings.TrimSuffix(path, packing)
	ext := filepath.Ext(bare)
	return fmt.Sprintf("%s-%d%s%s", strings.TrimSuffix(bare, ext), n, ext, packing)
}

// errStop marks an error of emit, as opposed to one of the file.
var errStop = errors.New("no more rows are wanted")

// write writes one file and returns the rows in it. A row that cannot be written is
// emitted as failed.
func (w *fileWriter) write(ctx context.Context, path string, rows []*Row, emit Emit) (written []*Row, err error) {
	if err := w.path.check(ctx, path); err != nil {
		return nil, err
	}
	if err := records.Writable(path); err != nil {
		return nil, err
	}
	if remotefs.IsOwn(ctx, path) {
		return nil, fmt.Errorf("%s is a file of the run itself, which reads it or writes its results to it: use another name", remotefs.Redacted(path))
	}
	if !remotefs.Claim(ctx, path, w) {
		return nil, fmt.Errorf("%s was written before in this run, by another step or for another row of the flow that runs this one: use another name", remotefs.Redacted(path))
	}
	defer func() {
		if err != nil || len(written) == 0 {
			remotefs.Release(ctx, path, w)
		}
	}()
	columns := w.setVariables(rows)
	file, err := records.Create(ctx, path, w.declared(columns))
	if err != nil {
		return nil, err
	}
	defer file.Abort() // no effect once the file is complete
	for _, row := range rows {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		cells, err := cellsOf(columns, row)
		if err == nil {
			err = file.Write(cells...)
		}
		var rowError *records.ValueError
		switch {
		case err == nil:
			written = append(written, row)
			continue
		case !errors.As(err, &rowError) && !errors.As(err, new(*value.Error)):
			return nil, err
		}
		if err := emitFailed(row, w.id, err, emit); err != nil {
			return nil, fmt.Errorf("%w: %w", errStop, err)
		}
	}
	if len(written) == 0 {
		return nil, nil
	}
	return written, file.Close()
}

// setVariables returns the variables to write: without inputs, the variables that the row
// has set.
func (w *fileWriter) setVariables(rows []*Row) []slot {
	if !w.all {
		return w.columns
	}
	return slices.DeleteFunc(slices.Clone(w.columns), func(s slot) bool {
		return !slices.ContainsFunc(rows, func(r *Row) bool { return r.Values[s.at] != value.Unset })
	})
}

// declared returns the columns with the types of their variables.
func (w *fileWriter) declared(columns []slot) []records.Column {
	out := make([]records.Column, len(columns))
	for i, c := range columns {
		out[i] = records.ColumnOf(c.of)
		out[i].Kind = columnKind(c.of.Type)
		out[i].NoFormulas = w.csvSafe
	}
	return out
}

// columnKind returns how a column of a declared type is written.
func columnKind(t spec.Type) records.Kind {
	if t.Is("citation_url") || t.Is("citation_document") || t.Is(spec.Any) {
		return records.JSONText
	}
	return records.KindOf(t)
}

// cellsOf returns the values of a row for the columns; nil where nothing is set.
func cellsOf(columns []slot, row *Row) ([]any, error) {
	cells := make([]any, len(columns))
	for i, c := range columns {
		cells[i] = c.orNull(row)
		switch columnKind(c.of.Type) {
		case records.Text, records.JSONText: // records writes any value
			continue
		}
		if cells[i] == nil {
			continue
		}
		x, err := value.Coerce(c.of.Type, cells[i])
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", c.of.ID, err)
		}
		cells[i] = x
	}
	return cells, nil
}

// filePath is a constant path or the variable that holds one: a local path or an
// address that package records can read. Constant paths are relative to the working
// directory. Those of a variable come from a row or a model: they are relative to the base
// folder, and not outside of it.
type filePath struct {
	constant string
	variable *slot
	base     string // a folder or an address; empty for the working directory
	writes   bool   // the folder for files that the document writes replaces the working directory
}

// filePath converts the path of a document. usable returns an error for an address that
// this build cannot use.
func (e *Env) filePath(p spec.PathRef, base string, usable func(string) error) (filePath, error) {
	if p.Var.To == nil {
		constant, err := location(p.URI)
		if err != nil {
			return filePath{}, err
		}
		return filePath{constant: constant}, wrapLocationError(constant, usable(constant))
	}
	if !spec.HoldsPath(p.Var.To.Type) {
		return filePath{}, fmt.Errorf("variable %s: a path must be text, is %s", p.Var.ID, p.Var.To.Type)
	}
	if trust.IsAddress(base) {
		if err := usable(trust.Below(base, "file")); err != nil {
			return filePath{}, fmt.Errorf("base: %w", wrapLocationError(base, err))
		}
	}
	s, err := e.slot(p.Var.To)
	return filePath{variable: &s, base: base}, err
}

// wrapLocationError adds the address to an error of package remotefs that lacks it.
func wrapLocationError(address string, err error) error {
	if err == nil || errors.As(err, new(*remotefs.AccessError)) {
		return err
	}
	return fmt.Errorf("%s: %w", remotefs.Redacted(address), err)
}

// of returns the path for a row, which check has to allow.
func (p filePath) of(ctx context.Context, row *Row) (string, error) {
	if p.variable == nil {
		return p.output(ctx, p.constant), nil
	}
	v, err := p.variable.read(row)
	if err != nil {
		return "", err
	}
	s, ok := v.(string)
	if !ok {
		return "", fmt.Errorf("variable %s: expected a path, got %s", p.variable.of.ID, value.Describe(v))
	}
	path, err := location(s)
	if err != nil {
		return "", fmt.Errorf("variable %s: %w", p.variable.of.ID, err)
	}
	if p.base != "" {
		path = trust.Below(p.base, path)
	}
	return p.output(ctx, path), nil
}

// output returns the path of a file that is written.
func (p filePath) output(ctx context.Context, path string) string {
	if p.writes {
		return trust.From(ctx).Output(path)
	}
	return path
}

// check returns an error if a path that comes from a row is outside of the base folder.
func (p filePath) check(ctx context.Context, path string) error {
	if p.variable == nil || p.base == "" && !trust.IsAddress(path) && trust.From(ctx).Restricted() {
		return nil // the policy of a restricted document has its folders
	}
	base := p.output(ctx, p.base)
	if p.base == "" {
		var err error
		if base, err = p.workingDirectory(ctx); err != nil {
			return err
		}
	}
	if trust.IsBelow(base, path) {
		return nil
	}
	shown := "the base folder " + remotefs.Redacted(base)
	if p.base == "" {
		shown = "the working directory " + base
		if p.output(ctx, ".") != "." {
			shown = "the output folder " + base
		}
	}
	return fmt.Errorf("variable %s: %s is outside of %s; declare base: with the folder or the address of such files",
		p.variable.of.ID, remotefs.Redacted(path), shown)
}

// workingDirectory returns the folder of paths without a declared base. The root of the file
// system, where services run, contains all files, so that it is not accepted.
func (p filePath) workingDirectory(ctx context.Context) (string, error) {
	folder, err := filepath.Abs(p.output(ctx, "."))
	if err != nil {
		return "", err
	}
	if cwd, err := os.Getwd(); err == nil && cwd == folder && folder == filepath.Dir(folder) {
		return "", fmt.Errorf("variable %s: the working directory is the root of the file system; declare base: with the folder of such files", p.variable.of.ID)
	}
	return folder, nil
}

// location converts a file: URI to a local path. It returns local paths and other
// addresses unchanged.
func location(uri string) (string, error) {
	if strings.TrimSpace(uri) == "" {
		return "", errors.New("the path is empty")
	}
	rest, isFile := strings.CutPrefix(uri, "file://")
	if !isFile {
		return uri, nil
	}
	u, err := url.Parse(uri)
	if err != nil || u.Path == "" || u.Host != "" && u.Host != "localhost" {
		return "", fmt.Errorf("file://%s is not the URI of a local file", rest)
	}
	return u.Path, nil
}
