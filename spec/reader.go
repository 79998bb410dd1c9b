package spec

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Reader declares one reader of documents: a row of the table that the validator, the
// editor, the manual and the runtime read. What reads the documents is the row of the
// same name in internal/documents.
type Reader struct {
	Implementation
	// LoaderArgs returns a new struct for the keys of `loader_args`; nil for none.
	LoaderArgs func() any
	Auths      []string // types of auth that it accepts; empty for none
	Local      bool     // it reads local files only
	Bucket     string   // the service whose buckets it reads: s3, gs or azure; empty for others
}

// ReaderStep is a step that reads documents.
type ReaderStep interface {
	Step
	// Reader is the reader of the documents.
	Reader() Reader
}

// Reader returns the row of the reader of the step, the zero Reader for an unknown one.
func (s *DocumentSource) Reader() Reader {
	_, row := selection("reader_module", "reader", s.ReaderModule, Readers(), func(r Reader) Implementation { return r.Implementation })
	return row
}

// Readers lists the readers in the order in which messages and editors propose them.
// The caller must not change the list.
func Readers() []Reader { return readers() }

var readers = sync.OnceValue(readerRows)

// Selection returns the reader with its arguments. Each input of the step that is named
// like an argument has the value of that argument.
func (s *DocumentSource) Selection() Selection {
	made, row := selection("reader_module", "reader", s.ReaderModule, Readers(), func(r Reader) Implementation { return r.Implementation })
	made.Auths = append([]string{}, row.Auths...)
	made.Mappings = []Argument{
		{Key: "args", Given: s.Args, Into: newArguments(row.Args)},
		{Key: "loader_args", Given: s.LoaderArgs, Into: newArguments(row.LoaderArgs)},
	}
	for i := range s.Inputs {
		made.Runtime = append(made.Runtime, s.Inputs[i].ID)
	}
	return made
}

// readerRows is the table.
func readerRows() []Reader {
	web := []string{"api_key", "bearer_token", "basic", "oauth2"}
	return []Reader{
		{
			Implementation: Implementation{Name: "directory", Doc: "the files of a local folder",
				Aliases: []string{"llama_index.core.SimpleDirectoryReader", "llama_index.core.readers.SimpleDirectoryReader",
					"llama_index.core.readers.file.base.SimpleDirectoryReader", "SimpleDirectoryReader"},
				Args: func() any { return new(DirectoryArgs) }},
			LoaderArgs: func() any { return new(DirectoryLoaderArgs) },
			Local:      true,
		},
		{
			Implementation: Implementation{Name: "json", Doc: "a file in JSON or JSON Lines",
				Aliases: []string{"llama_index.readers.json.JSONReader", "llama_index.readers.json.base.JSONReader", "JSONReader"},
				Args:    func() any { return new(JSONArgs) }},
			LoaderArgs: func() any { return new(JSONLoaderArgs) },
		},
		{
			Implementation: Implementation{Name: "remote", Doc: "files at addresses of web servers and of the stores of clouds (s3, gs, az)",
				Aliases: []string{"llama_index.readers.remote.RemoteReader", "llama_index.readers.remote.base.RemoteReader", "RemoteReader"},
				Args:    func() any { return new(RemoteArgs) }},
			Auths: web,
		},
		{
			Implementation: Implementation{Name: "s3", Doc: "the objects of a bucket of Amazon S3",
				Aliases: []string{"llama_index.readers.s3.S3Reader", "llama_index.readers.s3.base.S3Reader", "S3Reader"},
				Args:    func() any { return new(BucketArgs) }},
			Bucket: "s3",
		},
		{
			Implementation: Implementation{Name: "gcs", Doc: "the objects of a bucket of Google Cloud Storage",
				Aliases: []string{"llama_index.readers.gcs.GCSReader", "llama_index.readers.gcs.base.GCSReader", "GCSReader"},
				Args:    func() any { return new(BucketArgs) }},
			Bucket: "gs",
		},
		{
			Implementation: Implementation{Name: "azure_blob", Doc: "the blobs of a container of Azure Storage",
				Aliases: []string{"llama_index.readers.azstorage_blob.AzStorageBlobReader", "llama_index.readers.azstorage_blob.base.AzStorageBlobReader", "AzStorageBlobReader"},
				Args:    func() any { return new(AzureBlobArgs) }},
			Bucket: "azure",
		},
		{
			Implementation: Implementation{Name: "huggingface", Doc: "a file in JSON Lines of a dataset on Hugging Face",
				Aliases: []string{"llama_index.readers.huggingface_fs.HuggingFaceFSReader", "llama_index.readers.huggingface_fs.base.HuggingFaceFSReader", "HuggingFaceFSReader"},
				Args:    func() any { return new(HuggingFaceArgs) }},
			LoaderArgs: func() any { return new(HuggingFaceLoaderArgs) },
			Auths:      []string{"bearer_token"},
		},
		{
			Implementation: Implementation{Name: "web", Doc: "pages of web sites, with the pages that they link to",
				Args: func() any { return new(WebArgs) }},
			Auths: web,
		},
		{
			Implementation: Implementation{Name: "sitemap", Doc: "the pages that the sitemap of a web site lists",
				Args: func() any { return new(SitemapArgs) }},
			Auths: web,
		},
		{
			Implementation: Implementation{Name: "sql", Doc: "the rows of a database query",
				Args: func() any { return new(SQLArgs) }},
		},
	}
}

// FileArgs are the arguments that the readers of files share.
type FileArgs struct {
	// RequiredExts are the extensions of the files that are read, such as .md; without it all files are read.
	RequiredExts []string `yaml:"required_exts"`
	// Exclude are patterns of files and folders that are not read, relative to the folder, such as drafts or *.tmp; with recursive they apply in every folder.
	Exclude []string `yaml:"exclude"`
	// ExcludeHidden skips files and folders whose names begin with a dot.
	ExcludeHidden bool `yaml:"exclude_hidden" default:"true"`
	// ExcludeEmpty skips empty files.
	ExcludeEmpty bool `yaml:"exclude_empty" default:"false"`
	// NumFilesLimit is the maximum number of files; 0 for no limit.
	NumFilesLimit int `yaml:"num_files_limit" default:"0"`
	// FilenameAsID uses the path of a file as the id of its document.
	FilenameAsID bool `yaml:"filename_as_id" default:"false"`
	// Encoding is the charset of text files; without it, UTF-8 or the charset that is detected.
	Encoding string `yaml:"encoding"`
	// Errors sets what happens to bytes that the charset does not have: ignore, replace or strict.
	Errors string `yaml:"errors" default:"ignore"`
	// Password opens the PDF files that need one, mostly ${VAR}.
	Password string `yaml:"password"`
}

// CheckArguments reports an unknown value of errors and extensions without a dot.
func (a *FileArgs) CheckArguments() []*ArgumentError {
	var problems []*ArgumentError
	if known := []string{"ignore", "replace", "strict"}; !slices.Contains(known, a.Errors) {
		problems = append(problems, &ArgumentError{Key: "errors", Message: "expected " + strings.Join(known, ", ")})
	}
	for i, ext := range a.RequiredExts {
		if !strings.HasPrefix(ext, ".") {
			problems = append(problems, &ArgumentError{Key: "required_exts", Message: fmt.Sprintf("item %d: an extension begins with a dot", i+1)})
		}
	}
	return problems
}

// DirectoryArgs are the arguments of the reader directory.
type DirectoryArgs struct {
	// InputDir is the folder whose files are read.
	InputDir string `yaml:"input_dir"`
	// InputFiles are the files that are read, instead of a folder.
	InputFiles []string `yaml:"input_files"`
	// Recursive also reads the files of the folders below.
	Recursive bool `yaml:"recursive" default:"false"`
	FileArgs
}

// DirectoryLoaderArgs are the loader arguments of the reader directory. They change nothing about the documents.
type DirectoryLoaderArgs struct {
	// NumWorkers is accepted from documents of LlamaIndex; files are read one after the other, so that memory is limited.
	NumWorkers *int `yaml:"num_workers"`
	// ShowProgress is accepted from documents of LlamaIndex; a run shows its own progress.
	ShowProgress bool `yaml:"show_progress" default:"false"`
}

// CheckArguments reports a folder and files that are both missing.
func (a *DirectoryArgs) CheckArguments() []*ArgumentError {
	problems := a.FileArgs.CheckArguments()
	if a.InputDir == "" && len(a.InputFiles) == 0 {
		problems = append(problems, &ArgumentError{Missing: []string{"input_dir", "input_files"}, Message: "neither input_dir nor input_files is set",
			Hint: "add input_dir: with the folder to read, or an input of the step with this name"})
	}
	return problems
}

// JSONArgs are the arguments of the reader json.
type JSONArgs struct {
	// LevelsBack writes each value on a line, after this number of the keys above it; 0 for all of them.
	LevelsBack *int `yaml:"levels_back"`
	// CollapseLength writes values of up to this number of characters as JSON on one line; it needs levels_back.
	CollapseLength *int `yaml:"collapse_length"`
	// EnsureASCII writes other characters than ASCII as \u escapes.
	EnsureASCII bool `yaml:"ensure_ascii" default:"false"`
	// IsJSONL reads one document from each line of a file in JSON Lines.
	IsJSONL bool `yaml:"is_jsonl" default:"false"`
	// CleanJSON removes the lines that have only brackets.
	CleanJSON bool `yaml:"clean_json" default:"true"`
}

// CheckArguments reports negative numbers and a length without levels.
func (a *JSONArgs) CheckArguments() []*ArgumentError {
	var problems []*ArgumentError
	if a.LevelsBack != nil && *a.LevelsBack < 0 {
		problems = append(problems, &ArgumentError{Key: "levels_back", Message: "must be at least 0"})
	}
	if a.CollapseLength != nil && a.LevelsBack == nil {
		problems = append(problems, &ArgumentError{Key: "collapse_length", Message: "has no effect without levels_back"})
	}
	return problems
}

// JSONLoaderArgs are the loader arguments of the reader json.
type JSONLoaderArgs struct {
	// InputFile is the file to read.
	InputFile string `yaml:"input_file" jsonschema:"required"`
	// ExtraInfo is the metadata of the documents.
	ExtraInfo map[string]any `yaml:"extra_info"`
}

// RemoteArgs are the arguments of the reader remote.
type RemoteArgs struct {
	// URL is the address of the file: http, https, s3, gs or az.
	URL string `yaml:"url"`
	// URLs are further addresses.
	URLs []string `yaml:"urls"`
	// AllowPrivate lets the addresses be loopback, private or link-local ones.
	AllowPrivate bool `yaml:"allow_private" default:"false"`
	// Encoding is the charset of text files; without it, that of the server or the one that is detected.
	Encoding string `yaml:"encoding"`
	// Password opens the PDF files that need one, mostly ${VAR}.
	Password string `yaml:"password"`
}

// CheckArguments reports missing addresses.
func (a *RemoteArgs) CheckArguments() []*ArgumentError {
	if a.URL == "" && len(a.URLs) == 0 {
		return []*ArgumentError{{Missing: []string{"url", "urls"}, Message: "neither url nor urls is set", Hint: "add url: with the address to read"}}
	}
	return nil
}

// BucketArgs are the arguments of the readers s3 and gcs. Credentials are those of the environment.
type BucketArgs struct {
	// Bucket is the name of the bucket.
	Bucket string `yaml:"bucket" jsonschema:"required"`
	// Prefix is how the keys of the objects begin that are read.
	Prefix string `yaml:"prefix"`
	// Key is the only object that is read.
	Key string `yaml:"key"`
	// Recursive also reads the objects whose keys have more slashes after the prefix.
	Recursive bool `yaml:"recursive" default:"true"`
	FileArgs
}

// AzureBlobArgs are the arguments of the reader azure_blob. Credentials are those of the environment.
type AzureBlobArgs struct {
	// ContainerName is the name of the container.
	ContainerName string `yaml:"container_name" jsonschema:"required"`
	// Prefix is how the names of the blobs begin that are read.
	Prefix string `yaml:"prefix"`
	// Blob is the only blob that is read.
	Blob string `yaml:"blob"`
	// Recursive also reads the blobs whose names have more slashes after the prefix.
	Recursive bool `yaml:"recursive" default:"true"`
	FileArgs
}

// HuggingFaceArgs are the arguments of the reader huggingface.
type HuggingFaceArgs struct {
	// Endpoint is the address of the server.
	Endpoint string `yaml:"endpoint" default:"https://huggingface.co"`
	// AllowPrivate lets the endpoint be a loopback, private or link-local address.
	AllowPrivate bool `yaml:"allow_private" default:"false"`
}

// HuggingFaceLoaderArgs are the loader arguments of the reader huggingface.
type HuggingFaceLoaderArgs struct {
	// Path is the path of a file in JSON Lines, such as datasets/OWNER/NAME/train.jsonl; @REVISION may follow the name.
	Path string `yaml:"path" jsonschema:"required"`
}

// VisitArgs are the arguments that the readers of web sites share.
type VisitArgs struct {
	// MaxPages is the maximum number of pages that are read.
	MaxPages int `yaml:"max_pages" default:"100"`
	// Exclude are patterns of paths that are not read, such as /login or /archive/**.
	Exclude []string `yaml:"exclude"`
	// Delay is the time between two requests to a server, such as 500ms; the server's robots.txt may ask for more.
	Delay string `yaml:"delay" default:"0s"`
	// Timeout is the time for one page.
	Timeout string `yaml:"timeout" default:"30s"`
	// MaxPageBytes is the maximum size of a page.
	MaxPageBytes int `yaml:"max_page_bytes" default:"10485760"`
	// UserAgent is the name of the program in requests and in robots.txt.
	UserAgent string `yaml:"user_agent" default:"qtype"`
	// AllowPrivate lets the addresses be loopback, private or link-local ones.
	AllowPrivate bool `yaml:"allow_private" default:"false"`
}

// CheckArguments reports lengths of time and limits that are not positive.
func (a *VisitArgs) CheckArguments() []*ArgumentError {
	var problems []*ArgumentError
	for _, d := range []struct{ key, text string }{{"delay", a.Delay}, {"timeout", a.Timeout}} {
		if length, err := time.ParseDuration(d.text); err != nil || length < 0 || length == 0 && d.key == "timeout" {
			problems = append(problems, &ArgumentError{Key: d.key, Message: "expected a length of time, such as 500ms or 30s"})
		}
	}
	if a.MaxPages < 1 {
		problems = append(problems, &ArgumentError{Key: "max_pages", Message: "must be at least 1"})
	}
	if a.MaxPageBytes < 1 {
		problems = append(problems, &ArgumentError{Key: "max_page_bytes", Message: "must be at least 1"})
	}
	return problems
}

// WebArgs are the arguments of the reader web.
type WebArgs struct {
	// URLs are the pages to start with.
	URLs []string `yaml:"urls" jsonschema:"required"`
	// MaxDepth is how many links are followed from a first page; 0 reads only the first pages.
	MaxDepth int `yaml:"max_depth" default:"0"`
	// SameHost follows only links to the servers of the first pages.
	SameHost bool `yaml:"same_host" default:"true"`
	VisitArgs
}

// CheckArguments also reports a negative depth.
func (a *WebArgs) CheckArguments() []*ArgumentError {
	problems := a.VisitArgs.CheckArguments()
	if a.MaxDepth < 0 {
		problems = append(problems, &ArgumentError{Key: "max_depth", Message: "must be at least 0"})
	}
	return problems
}

// SitemapArgs are the arguments of the reader sitemap.
type SitemapArgs struct {
	// SitemapURL is the address of a sitemap or of an index of sitemaps, or that of a site, whose robots.txt names its sitemaps.
	SitemapURL string `yaml:"sitemap_url" jsonschema:"required"`
	// Filter is a part of the addresses of the pages that are read.
	Filter string `yaml:"filter"`
	VisitArgs
}

// SQLArgs are the arguments of the reader sql.
type SQLArgs struct {
	// Connection is the URL of the database, as of an SQLSource.
	Connection string `yaml:"connection" jsonschema:"required"`
	// Query is the query; :name is replaced by the input of the step with this name.
	Query string `yaml:"query" jsonschema:"required"`
	// ContentColumns are the columns of the text; without it all that are not metadata. Several are written as lines "column: value".
	ContentColumns []string `yaml:"content_columns"`
	// MetadataColumns are the columns of the metadata.
	MetadataColumns []string `yaml:"metadata_columns"`
	// IDColumn is the column that identifies a row; without it the id follows from the values of the row.
	IDColumn string `yaml:"id_column"`
}

// Documents returns the application and the documents that it references, at any
// depth, each with its own models and tools in Models and Tools.
func (a *Application) Documents() []*Document {
	all := []*Document{{Application: a, Models: a.Models, Tools: a.Tools}}
	for _, ref := range a.References {
		switch {
		case ref == nil:
		case ref.Application != nil:
			all = append(all, ref.Application.Documents()...)
		default:
			all = append(all, ref)
		}
	}
	return all
}

// Documents returns the documents of the application, or a document that is a list of components itself.
func (d *Document) Documents() []*Document {
	if d.Application == nil {
		return []*Document{d}
	}
	return d.Application.Documents()
}

// FileFormat returns the format of a file of rows by its extension, after the extension of
// a compression (.gz, .zst), such as csv; empty if it has none.
func FileFormat(path string) string {
	ext := strings.ToLower(filepath.Ext(path))
	if slices.Contains([]string{".gz", ".zst", ".zstd"}, ext) {
		ext = strings.ToLower(filepath.Ext(path[:len(path)-len(ext)]))
	}
	switch ext {
	case ".xlsx", ".xlsm":
		return "xlsx"
	case ".csv":
		return "csv"
	case ".tsv", ".tab":
		return "tsv"
	case ".json":
		return "json"
	case ".jsonl", ".ndjson":
		return "jsonl"
	case ".parquet", ".pq":
		return "parquet"
	}
	return ""
}

// UnwritableFile returns why a FileWriter cannot write a file of that name; empty if it can.
func UnwritableFile(path string) string {
	switch FileFormat(path) {
	case "":
		return "unknown file format: use .csv, .tsv, .json, .jsonl or .parquet, optionally followed by .gz or .zst"
	case "xlsx":
		return "Excel workbooks cannot be written: use .csv or .parquet"
	}
	return ""
}
