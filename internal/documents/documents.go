// Package documents reads documents for the step DocumentSource: files of folders and
// buckets, pages of web sites, datasets and rows of databases. The table of readers is in
// package spec; this package has what reads.
//
// Documents are read one at a time. Ids are deterministic: reading the same source again
// gives the same ids, so that an index is updated and not duplicated.
package documents

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/qtype-dev/qtype/internal/documents/format"
	"github.com/qtype-dev/qtype/spec"
)

// Document is a document with its text.
type Document struct {
	ID       string         // the same each time the document is read
	Name     string         // the name of the file
	URI      string         // the address; empty for a local file
	Text     string         // the content
	Metadata map[string]any // what is known about it: values of JSON
}

// Emit is called for each document, or with the error of one that could not be read. An
// error that it returns ends the reading and is returned by Read.
type Emit func(doc *Document, failed error) error

// Source is a configured reader. It is safe for concurrent use.
type Source interface {
	// Read reads all documents. The error concerns the source as a whole, such as a
	// missing folder.
	Read(ctx context.Context, emit Emit) error
}

// Env is what readers need of the application.
type Env struct {
	// HTTP returns the client for a server: with the credentials of the step, which no
	// other server gets, without redirects, and with the check of private addresses.
	HTTP func(url string, allowPrivate bool) (*http.Client, error)
	// Limits bound each file.
	Limits format.Limits
	// Variables are the inputs of the step on the current row, by their names.
	Variables map[string]any
}

// builder makes a Source from decoded arguments.
type builder func(args, loaderArgs any, env Env) (Source, error)

// build adapts a function for a reader without loader arguments.
func build[A any](make func(*A, Env) (Source, error)) builder {
	return func(args, _ any, env Env) (Source, error) { return make(args.(*A), env) }
}

// buildWithLoader adapts a function for a reader with loader arguments.
func buildWithLoader[A, L any](make func(*A, *L, Env) (Source, error)) builder {
	return func(args, loader any, env Env) (Source, error) { return make(args.(*A), loader.(*L), env) }
}

// builders is the one table of what reads, by the name of the row of spec.Readers.
func builders() map[string]builder {
	return map[string]builder{
		"directory":   build(newDirectory),
		"json":        buildWithLoader(newJSONFile),
		"remote":      build(newRemote),
		"s3":          build(newS3),
		"gcs":         build(newGCS),
		"azure_blob":  build(newAzureBlob),
		"huggingface": buildWithLoader(newHuggingFace),
		"web":         build(newSite),
		"sitemap":     build(newSitemap),
		"sql":         build(newRows),
	}
}

// Open makes the reader of a step. Variables of env that are named like an argument
// replace it. The error describes a wrong argument.
func Open(s *spec.DocumentSource, env Env) (Source, error) {
	chosen := s.Selection()
	if !chosen.Known {
		return nil, fmt.Errorf("unknown reader %q; known are %s", s.ReaderModule, strings.Join(chosen.Names(), ", "))
	}
	for i, m := range chosen.Mappings {
		chosen.Mappings[i].Given = withVariables(m, env.Variables)
	}
	chosen.Runtime = nil // the values of all variables are known
	for _, problem := range chosen.Decode() {
		return nil, problem
	}
	for _, row := range spec.Readers() {
		if row.IsNamed(s.ReaderModule) {
			return builders()[row.Name](chosen.Mappings[0].Into, chosen.Mappings[1].Into, env)
		}
	}
	return nil, fmt.Errorf("unknown reader %q", s.ReaderModule)
}

// withVariables returns the mapping of a document with the values of variables that are
// named like one of its keys. A null variable replaces nothing.
func withVariables(m spec.Argument, variables map[string]any) map[string]any {
	given := maps.Clone(m.Given)
	for _, key := range spec.ArgumentKeys(m.Into) {
		if v, ok := variables[key]; ok && v != nil {
			if given == nil {
				given = map[string]any{}
			}
			given[key] = v
		}
	}
	return given
}

// documentID returns the id of the document at a path or an address: a UUID of version 5
// (RFC 9562) in the namespace of URLs.
func documentID(of string) string { return uuid.NewSHA1(uuid.NameSpaceURL, []byte(of)).String() }
