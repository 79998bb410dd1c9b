package spec

// AccessPolicy is the file of an organization that limits what all documents may reach. A
// key that is absent has no limit, an empty list allows nothing.
type AccessPolicy struct {
	Positioned
	// Hosts are the servers that documents may call: HOST, HOST:PORT or *.DOMAIN, and the names of buckets.
	Hosts []string `yaml:"hosts"`
	// Folders are the absolute paths of folders where documents may read and write files.
	Folders []string `yaml:"folders"`
	// Programs are the programs that documents may start, as they name them; python for Python functions.
	Programs []string `yaml:"programs"`
	// Providers are the providers of models that documents may use.
	Providers []string `yaml:"providers"`
	// Containment lists how programs of tools may be contained: bwrap, docker or none. Without none, programs must be contained.
	Containment []string `yaml:"containment"`
}
