package spec

import "sync"

// Reader declares one reader of documents: a row of the table that the validator, the
// editor, the manual and the runtime read. What reads the documents is the row of the
// same name in internal/documents.
type Reader struct {
	Implementation
	// LoaderArgs returns a new struct for the keys of `loader_args`; nil for none.
	LoaderArgs func() any
	Auths      []string // types of auth that it accepts; empty for none
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

// DirectoryArgs are the arguments of the reader directory.
type DirectoryArgs struct {
	// InputDir is the folder whose files are read.
	InputDir string `yaml:"input_dir"`
	// InputFiles are the files that are read, instead of a folder.
	InputFiles []string `yaml:"input_files"`
	// Exclude are patterns of files and folders that are not read, relative to the folder, such as drafts or **/*.tmp.
	Exclude []string `yaml:"exclude"`
	// ExcludeHidden skips files and folders whose names begin with a dot.
	ExcludeHidden bool `yaml:"exclude_hidden" default:"true"`
	// ExcludeEmpty skips empty files.
	ExcludeEmpty bool `yaml:"exclude_empty" default:"false"`
	// Recursive also reads the files of the folders below.
	Recursive bool `yaml:"recursive" default:"false"`
	// RequiredExts are the extensions of the files that are read, such as .md; without it all files are read.
	RequiredExts []string `yaml:"required_exts"`
	// NumFilesLimit is the maximum number of files.
	NumFilesLimit int `yaml:"num_files_limit" default:"0"`
	// Encoding is the encoding of text files.
	Encoding string `yaml:"encoding" default:"utf-8"`
	// Errors sets what happens to bytes that are not valid in the encoding: ignore, replace or strict.
	Errors string `yaml:"errors" default:"ignore"`
	// FilenameAsID uses the path of a file as the id of its document.
	FilenameAsID bool `yaml:"filename_as_id" default:"false"`
}

// CheckArguments reports a folder and files that are both missing.
func (a *DirectoryArgs) CheckArguments() []*ArgumentError {
	if a.InputDir == "" && len(a.InputFiles) == 0 {
		return []*ArgumentError{{Missing: []string{"input_dir", "input_files"}, Message: "neither input_dir nor input_files is set",
			Hint: "add input_dir: with the folder to read, or an input of the step with this name"}}
	}
	return nil
}

// readerRows is the table.
func readerRows() []Reader {
	return []Reader{
		{
			Implementation: Implementation{Name: "directory", Doc: "the files of a folder",
				Aliases: []string{"llama_index.core.SimpleDirectoryReader", "llama_index.core.readers.SimpleDirectoryReader", "llama_index.core.readers.file.base.SimpleDirectoryReader", "SimpleDirectoryReader"},
				Args:    func() any { return new(DirectoryArgs) }},
		},
	}
}
