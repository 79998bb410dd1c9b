package spec

import (
	"fmt"
	"slices"
	"strings"
)

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
