package documents

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"mime"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/internal/documents/format"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/trust"
	"github.com/qtype-dev/qtype/spec"
)

// directory reads the files of a local folder, or single local files.
type directory struct {
	args   *spec.DirectoryArgs
	filter *fileFilter
	limits format.Limits
}

func newDirectory(args *spec.DirectoryArgs, env Env) (Source, error) {
	for _, path := range append([]string{args.InputDir}, args.InputFiles...) {
		if scheme, remote := remotefs.Remote(path); remote {
			return nil, fmt.Errorf("%s: the reader directory reads local files; use the reader remote, s3, gcs or azure_blob for %s://", remotefs.Redacted(path), scheme)
		}
	}
	filter, err := newFileFilter(&args.FileArgs, args.Recursive)
	return &directory{args: args, filter: filter, limits: env.Limits}, err
}

// Read reads the files in the order of their paths. A folder that cannot be read fails
// like a file.
func (d *directory) Read(ctx context.Context, emit Emit) error {
	root := ""
	files := d.args.InputFiles
	if len(files) == 0 {
		root = remotefs.Path(d.args.InputDir)
		var failed []error
		var err error
		if files, failed, err = d.list(ctx, root); err != nil {
			return err
		}
		for _, err := range failed {
			if err := emit(nil, err); err != nil {
				return err
			}
		}
	}
	for _, path := range files {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		read, err := d.read(ctx, filepath.Join(root, remotefs.Path(path)), root != "")
		if err := emitAll(read, err, emit); err != nil {
			return err
		}
	}
	return nil
}

// emitAll emits the documents of a file, or its error.
func emitAll(read []*Document, err error, emit Emit) error {
	if err != nil {
		return emit(nil, err)
	}
	for _, doc := range read {
		if err := emit(doc, nil); err != nil {
			return err
		}
	}
	return nil
}

// list returns the files to read, relative to the folder, and the errors of folders.
func (d *directory) list(ctx context.Context, root string) (files []string, failed []error, err error) {
	if err := trust.From(ctx).Read(root); err != nil {
		return nil, nil, err
	}
	at := trust.From(ctx).Place(root)
	info, err := os.Stat(at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, fmt.Errorf("the folder %s does not exist", root)
	case err != nil:
		return nil, nil, explainFile(root, err)
	case !info.IsDir():
		return nil, nil, fmt.Errorf("%s is not a folder; use input_files to read a file", root)
	}
	err = fs.WalkDir(os.DirFS(at), ".", func(rel string, entry fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			failed = append(failed, explainFile(filepath.Join(root, rel), err))
			return fs.SkipDir
		case rel == ".":
		case entry.IsDir() && (!d.args.Recursive || d.filter.rejectsFolder(rel)):
			return fs.SkipDir
		case !entry.IsDir():
			accepted, err := d.accepts(filepath.Join(at, rel), rel)
			if err != nil {
				failed = append(failed, explainFile(filepath.Join(root, rel), err))
			} else if accepted {
				files = append(files, rel)
			}
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	slices.SortFunc(files, comparePaths)
	if files = d.filter.limit(files); len(files) == 0 && len(failed) == 0 {
		return nil, nil, fmt.Errorf("no files found in %s", root)
	}
	return files, failed, nil
}

// accepts reports whether a file is read. A link is followed to a file only; one that leads
// nowhere is no file. Any other error is that of a file that the filter accepts: a file that was
// left out without an error would be taken for removed.
func (d *directory) accepts(path, rel string) (bool, error) {
	info, err := os.Stat(path)
	if err != nil {
		nowhere := errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP)
		if nowhere || !d.filter.accepts(rel, 1) {
			err = nil
		}
		return false, err
	}
	return info.Mode().IsRegular() && d.filter.accepts(rel, info.Size()), nil
}

// comparePaths orders paths by their parts, so that a folder is before a file with the
// same name and an extension.
func comparePaths(a, b string) int {
	return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/"))
}

// read reads one file. The paths of a folder's files are absolute in metadata and ids, as
// those of SimpleDirectoryReader.
func (d *directory) read(ctx context.Context, path string, absolute bool) ([]*Document, error) {
	f := &file{name: path, id: filepath.ToSlash(path)}
	if absolute {
		if full, err := filepath.Abs(path); err == nil {
			f.name = full
		}
	}
	if err := trust.From(ctx).Read(path); err != nil { // also a link in a folder that may be read
		return nil, err
	}
	in, err := os.Open(trust.From(ctx).Place(path))
	if err != nil {
		return nil, explainFile(path, err)
	}
	defer func() { _ = in.Close() }() // closing a file that was only read cannot lose data
	info, err := in.Stat()
	if err != nil {
		return nil, explainFile(path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: is not a file", path)
	}
	if f.data, err = readLimited(in, path, d.limits.MaxInput()); err != nil {
		return nil, explainFile(path, err)
	}
	f.metadata = fileMetadata(f.name, info.Size(), changedTime(info), info.ModTime())
	return f.documents(ctx, &d.args.FileArgs, d.limits)
}

// explainFile returns an error of the operating system with the path, once.
func explainFile(path string, err error) error {
	var of *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: does not exist", path)
	case errors.As(err, &of):
		return fmt.Errorf("%s: %w", path, of.Err)
	}
	return err
}

// readLimited reads everything up to a limit.
func readLimited(in io.Reader, name string, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(in, limit+1))
	if err == nil && int64(len(data)) > limit {
		return nil, tooLarge(name, limit)
	}
	return data, err
}

// tooLarge reports a file that exceeds the limit of bytes.
func tooLarge(name string, limit int64) error {
	shown := fmt.Sprintf("%d bytes", limit)
	if limit >= 1<<20 {
		shown = fmt.Sprintf("%d MB", limit>>20)
	}
	return fmt.Errorf("%s: is larger than %s", remotefs.Redacted(name), shown)
}

// convertedExtensions are the extensions of files whose text is not their content. Other
// files are text: what SimpleDirectoryReader does, so that splitters for HTML and JSON get
// what they expect. DocToTextConverter converts the rest.
const convertedExtensions = " .pdf .docx .pptx .ppt .pptm .doc .xls .xlsx .xlsm .odt .ods .odp .rtf .epub .mbox .eml .msg .csv .tsv .hwp " +
	".gif .jpg .jpeg .png .webp .bmp .tif .tiff .svgz .mp3 .mp4 .wav .zip .gz .7z .tar "

// file is a file of a folder, a bucket or a server.
type file struct {
	name      string // for messages and formats: a path or an address
	id        string // what its id follows from
	uri       string // its address; empty for a local file
	mediaType string // as a server declared it; empty if unknown
	metadata  map[string]any
	data      []byte
}

// isConverted reports whether the text of a file with this extension is not its content.
func isConverted(name string) bool {
	ext := strings.ToLower(path.Ext(name))
	return ext != "" && strings.Contains(convertedExtensions, " "+ext+" ")
}

// documents returns the documents of a file: one, or one for each page or message of a
// file that has them.
func (f *file) documents(ctx context.Context, args *spec.FileArgs, limits format.Limits) ([]*Document, error) {
	if !isConverted(baseName(f.name)) && (bytes.IndexByte(f.data, 0) < 0 || args.Encoding != "" || utf8.Valid(f.data) || hasMark(f.data)) {
		text, err := decodeText(f, args)
		if err != nil {
			return nil, err
		}
		return []*Document{f.document(text, f.partID(args, -1), nil)}, nil
	}
	result, err := format.Convert(ctx, format.File{Name: f.name, MediaType: f.mediaType, Charset: args.Encoding, Password: args.Password, Data: f.data}, limits)
	if err != nil {
		return nil, err
	}
	return f.parts(result, args), nil
}

// hasMark reports whether text begins with the byte order mark of UTF-16 or UTF-32.
func hasMark(data []byte) bool {
	return bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) || bytes.HasPrefix(data, []byte("\x00\x00\xfe\xff"))
}

// parts returns a document for each page of a PDF, each message of a mailbox, and one for
// other files.
func (f *file) parts(result *format.Result, args *spec.FileArgs) []*Document {
	var all []*Document
	switch {
	case (result.Format == "pdf" || result.Format == "mbox") && len(result.Pages) > 0:
		for i, text := range result.PageTexts() {
			more := map[string]any{}
			if result.Format == "pdf" {
				more["page_label"] = result.Pages[i].Label
				addUnknown(more, result.Pages[i].Unknown)
			}
			all = append(all, f.document(text, f.partID(args, i), more))
		}
	default:
		more := map[string]any{}
		if offsets := result.PageOffsets(); len(offsets) > 0 {
			more["page_offsets"] = offsets
		}
		all = append(all, f.document(result.Text, f.partID(args, 0), more))
	}
	return all
}

// addUnknown adds the share of characters that the fonts of a PDF file do not state, if there are any.
func addUnknown(metadata map[string]any, share float64) {
	if share > 0 {
		metadata[format.UnknownCharacters] = share
	}
}

// partID returns the id of a part of a file, -1 for a file that is one text. With
// filename_as_id it is that of SimpleDirectoryReader.
func (f *file) partID(args *spec.FileArgs, part int) string {
	suffix := ""
	if part >= 0 {
		suffix = fmt.Sprintf("_part_%d", part)
	}
	if args.FilenameAsID {
		return f.name + suffix
	}
	if part == 0 {
		suffix = "" // a file keeps its id when it gets a second page
	}
	return documentID(f.id + suffix)
}

func (f *file) document(text, id string, more map[string]any) *Document {
	metadata := maps.Clone(f.metadata)
	maps.Copy(metadata, more)
	return &Document{ID: id, Name: baseName(f.name), URI: f.uri, Text: text, Metadata: metadata}
}

// baseName returns the last part of a path or an address.
func baseName(name string) string {
	name = strings.TrimRight(strings.ReplaceAll(name, `\`, "/"), "/")
	return name[strings.LastIndexByte(name, '/')+1:]
}

// decodeText decodes a text file as the arguments say.
func decodeText(f *file, args *spec.FileArgs) (string, error) {
	text, err := format.DecodeText(format.File{Name: f.name, MediaType: f.mediaType, Charset: args.Encoding, Data: f.data})
	if err != nil {
		return "", err
	}
	invalid := strings.Contains(text, "\uFFFD") && !bytes.Contains(f.data, []byte("\uFFFD"))
	switch {
	case invalid && args.Errors == "strict":
		return "", fmt.Errorf("%s: has bytes that its charset does not have; set encoding, or errors: replace", f.name)
	case invalid && args.Errors == "ignore":
		text = strings.ReplaceAll(text, "\uFFFD", "")
	}
	return text, nil
}

// fileMetadata returns the six keys of SimpleDirectoryReader. Zero times are left out, and
// so is a type that is not known.
func fileMetadata(path string, size int64, created, modified time.Time) map[string]any {
	metadata := map[string]any{"file_path": path, "file_name": baseName(path), "file_size": size}
	if kind := mediaTypeOf(path); kind != "" {
		metadata["file_type"] = kind
	}
	if !created.IsZero() {
		metadata["creation_date"] = created.UTC().Format(time.DateOnly)
	}
	if !modified.IsZero() {
		metadata["last_modified_date"] = modified.UTC().Format(time.DateOnly)
	}
	return metadata
}

// mediaTypeOf returns the media type of a file name, empty if it is not known. The types
// of text files do not depend on the computer.
func mediaTypeOf(name string) string {
	ext := strings.ToLower(path.Ext(name))
	if known, ok := map[string]string{
		".md": "text/markdown", ".markdown": "text/markdown", ".txt": "text/plain", ".html": "text/html", ".htm": "text/html", ".csv": "text/csv",
		".tsv": "text/tab-separated-values", ".json": "application/json", ".xml": "text/xml", ".js": "text/javascript", ".css": "text/css",
		".py": "text/x-python", ".c": "text/plain", ".h": "text/plain", ".rst": "text/x-rst", ".eml": "message/rfc822", ".pdf": "application/pdf", ".epub": "application/epub+zip",
		".doc": "application/msword", ".xls": "application/vnd.ms-excel", ".ppt": "application/vnd.ms-powerpoint", ".mbox": "application/mbox",
		".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
		".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
		".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
	}[ext]; ok {
		return known
	}
	kind, _, _ := strings.Cut(mime.TypeByExtension(ext), ";")
	return kind
}

// fileFilter selects files by their paths, which are relative to the folder that is read
// and have slashes.
type fileFilter struct {
	args    *spec.FileArgs
	exclude []*regexp.Regexp
}

// newFileFilter compiles the patterns of exclude. In a recursive reading, a pattern
// applies in every folder.
func newFileFilter(args *spec.FileArgs, recursive bool) (*fileFilter, error) {
	f := &fileFilter{args: args}
	for _, pattern := range args.Exclude {
		if recursive && !strings.HasPrefix(pattern, "**/") && !strings.HasPrefix(pattern, "/") {
			pattern = "**/" + pattern
		}
		compiled, err := compilePattern(strings.TrimPrefix(pattern, "/"))
		if err != nil {
			return nil, fmt.Errorf("exclude: %w", err)
		}
		f.exclude = append(f.exclude, compiled)
	}
	return f, nil
}

// rejectsFolder reports whether nothing in a folder is read.
func (f *fileFilter) rejectsFolder(rel string) bool {
	return f.args.ExcludeHidden && isHidden(path.Base(rel)) || f.excludes(rel)
}

// accepts reports whether a file is read.
func (f *fileFilter) accepts(rel string, size int64) bool {
	hidden := f.args.ExcludeHidden && slices.ContainsFunc(strings.Split(rel, "/"), isHidden)
	wrongExtension := f.args.RequiredExts != nil && !slices.Contains(f.args.RequiredExts, extension(rel))
	return !hidden && !wrongExtension && (size > 0 || !f.args.ExcludeEmpty) && !f.excludes(rel)
}

// extension returns the extension of a path; a name that only begins with a dot has none.
func extension(rel string) string { return path.Ext(strings.TrimLeft(path.Base(rel), ".")) }

// limit returns the first files, as many as num_files_limit.
func (f *fileFilter) limit(files []string) []string {
	if n := f.args.NumFilesLimit; n > 0 && n < len(files) {
		return files[:n]
	}
	return files
}

// excludes reports whether a pattern matches a path or one of the folders that it is in.
func (f *fileFilter) excludes(rel string) bool {
	for at := len(rel); at > 0; at = strings.LastIndexByte(rel[:at], '/') {
		if slices.ContainsFunc(f.exclude, func(p *regexp.Regexp) bool { return p.MatchString(rel[:at]) }) {
			return true
		}
	}
	return false
}

func isHidden(name string) bool { return strings.HasPrefix(name, ".") && name != "." && name != ".." }

// maxPattern is the length of a pattern, which limits the size of its regular expression.
const maxPattern = 1000

// compilePattern converts a pattern: * matches within a name, ** any number of folders,
// ? one character, [abc] one of several.
func compilePattern(pattern string) (*regexp.Regexp, error) {
	if len(pattern) > maxPattern {
		return nil, fmt.Errorf("a pattern has more than %d characters", maxPattern)
	}
	var b strings.Builder
	b.WriteString(`(?s)^`)
	parts := strings.Split(strings.TrimSuffix(pattern, "/"), "/")
	for i, part := range parts {
		last := i == len(parts)-1
		switch {
		case part == "**" && last:
			b.WriteString(`.+`)
			continue
		case part == "**":
			b.WriteString(`(?:[^/]+/)*`)
			continue
		}
		writePart(&b, part)
		if !last {
			b.WriteByte('/')
		}
	}
	b.WriteByte('$')
	compiled, err := regexp.Compile(b.String())
	if err != nil {
		return nil, fmt.Errorf("invalid pattern %q", pattern)
	}
	return compiled, nil
}

// writePart writes the regular expression of a part between slashes.
func writePart(b *strings.Builder, part string) {
	for i := 0; i < len(part); i++ {
		switch part[i] {
		case '*':
			b.WriteString(`[^/]*`)
		case '?':
			b.WriteString(`[^/]`)
		case '[':
			end := strings.IndexByte(part[i:], ']')
			if end < 2 {
				b.WriteString(`\[`)
				continue
			}
			set := part[i+1 : i+end]
			negated := strings.HasPrefix(set, "!")
			set = strings.NewReplacer(`\`, `\\`, "^", `\^`, "[", `\[`).Replace(strings.TrimPrefix(set, "!"))
			b.WriteByte('[')
			if negated {
				b.WriteByte('^')
			}
			b.WriteString(set + "]")
			i += end
		default:
			_, size := utf8.DecodeRuneInString(part[i:])
			b.WriteString(regexp.QuoteMeta(part[i : i+size]))
			i += size - 1
		}
	}
}
