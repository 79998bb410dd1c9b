package trust

import (
	"net/url"
	"strings"
)

// Store returns an error if the document may not use the store of memories at an address,
// such as sqlite:conversations.db or postgres://host/database.
func (p *Policy) Store(address string) error {
	scheme, rest, _ := strings.Cut(address, ":")
	switch {
	case p == nil || scheme == "memory":
		return nil
	case scheme == "sqlite" || scheme == "file":
		path, ok := strings.CutPrefix(rest, "///")
		if !ok || scheme == "file" {
			path = strings.TrimPrefix(rest, "//")
		}
		return p.Write(path)
	case !strings.HasPrefix(rest, "//"): // a part of another module, whose files are not known here
		return p.Service("of a store")
	}
	return p.Database(address)
}

// Database returns an error if the document may not use the database at a URL. A client
// may take its hosts from the query, too.
func (p *Policy) Database(address string) error {
	if p == nil {
		return nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme == "" {
		return p.Service("of a database")
	}
	hosts := append(strings.Split(u.Host, ","), u.Query()["host"]...)
	for _, list := range hosts {
		for host := range strings.SplitSeq(list, ",") {
			if host == "" && len(hosts) > 1 {
				continue
			}
			if host == "" {
				host = "localhost"
			}
			if err := p.Service(host); err != nil {
				return err
			}
		}
	}
	return nil
}
