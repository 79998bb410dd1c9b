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
