package spec

import (
	"time"
)

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
