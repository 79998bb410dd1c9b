package trust

import (
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Read returns an error if the document may not read a file, which is a path or an
// address.
func (p *Policy) Read(name string) error {
	switch {
	case p == nil:
		return nil
	case IsAddress(name):
		return p.readAddress(name)
	}
	name = localPath(name)
	if err := p.Limits.folder("read", name); err != nil {
		return err
	}
	if !p.Restricted() || p.isBelowBase(name) || IsWithin(p.Grants.OutDir, name) ||
		slices.ContainsFunc(p.Grants.Read, func(granted string) bool { return IsWithin(granted, name) }) {
		return nil
	}
	return p.refuse("read the file "+name, "--allow-read "+name)
}

// isBelowBase reports whether a local file is in the folder of the document or below it.
func (p *Policy) isBelowBase(name string) bool {
	return !IsAddress(p.Base) && IsWithin(p.Base, name)
}

// readAddress returns an error if the document may not read an address. Buckets are read
// with the credentials of the user, so only the folder of the document is allowed.
func (p *Policy) readAddress(name string) error {
	u, err := url.Parse(name)
	if err == nil && (u.Scheme == "http" || u.Scheme == "https") {
		return p.Address(u)
	}
	_, rest, _ := strings.Cut(name, "://")
	bucket, _, _ := strings.Cut(rest, "/")
	if err := p.Limits.host(bucket); err != nil {
		return err
	}
	if !p.Restricted() || matchesHost(p.Grants.Hosts, bucket) || p.isInBucket(name) {
		return nil
	}
	return p.refuse("read the bucket "+bucket, "--allow-host "+bucket)
}

// isInBucket reports whether an address is in the folder of its bucket.
func (p *Policy) isInBucket(name string) bool {
	return p.Base != "" && !strings.HasPrefix(p.Base, "http") && strings.HasPrefix(name, p.Base) &&
		!slices.Contains(strings.Split(name, "/"), "..")
}

// Write returns an error if the document may not write a file, which is a path or an
// address.
func (p *Policy) Write(name string) error {
	switch {
	case p == nil:
		return nil
	case IsAddress(name):
		return p.writeAddress(name)
	}
	name = localPath(name)
	if err := p.Limits.folder("write", name); err != nil {
		return err
	}
	if !p.Restricted() || IsWithin(p.Grants.OutDir, name) {
		return nil
	}
	if p.Grants.OutDir != "" {
		return p.refuse("write the file "+name+", which is not below "+p.Grants.OutDir, "")
	}
	return p.refuse("write the file "+name, "--out-dir DIR")
}

func (p *Policy) writeAddress(name string) error {
	_, rest, _ := strings.Cut(name, "://")
	bucket, _, _ := strings.Cut(rest, "/")
	if err := p.Limits.host(bucket); err != nil {
		return err
	}
	if !p.Restricted() {
		return nil
	}
	return p.refuse("write to "+bucket, "")
}

// Output returns the path of a file that the document writes: with a folder for its files,
// relative paths are below that.
func (p *Policy) Output(path string) string {
	if p == nil || p.Grants.OutDir == "" || IsAddress(path) || filepath.IsAbs(localPath(path)) {
		return path
	}
	return filepath.Join(p.Grants.OutDir, localPath(path))
}

// folder returns an error if the organization does not allow a file.
func (l *Limits) folder(what, name string) error {
	if l == nil || l.Folders == nil || slices.ContainsFunc(l.Folders, func(folder string) bool { return IsWithin(folder, name) }) {
		return nil
	}
	return l.refuse(what+" the file "+name, "folders")
}

// localPath returns the path of a local file without the scheme that it may have.
func localPath(name string) string {
	_, rest := splitScheme(name)
	return rest
}

// IsWithin reports whether a path is a folder or below it, symbolic links resolved. An
// empty folder contains nothing.
func IsWithin(folder, path string) bool {
	if folder == "" {
		return false
	}
	border, err := resolved(folder)
	if err != nil {
		return false
	}
	full, err := resolved(path)
	if err != nil {
		return false
	}
	rel, err := filepath.Rel(border, full)
	return err == nil && filepath.IsLocal(rel)
}

// resolved returns an absolute path without symbolic links. The last parts of the path need
// not exist.
func resolved(path string) (string, error) {
	full, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	missing := ""
	for at := full; ; at = filepath.Dir(at) {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(real, missing), nil
		}
		if isLink(at) {
			return "", errDangling // a link to a place that does not exist may lead anywhere
		}
		if at == filepath.Dir(at) {
			return full, nil
		}
		missing = filepath.Join(filepath.Base(at), missing)
	}
}

// WithFixtures returns the policy with a folder in which all files of the document are.
func (p *Policy) WithFixtures(folder string) *Policy {
	made := &Policy{}
	if p != nil {
		*made = *p
	}
	made.Fixtures = folder
	return made
}

// Place returns where a file is that the document names by a path or an address. Without
// fixtures that is the name itself. With them it is below their folder: a path of the working
// directory at the same place there, another path and an address after their root.
func (p *Policy) Place(name string) string {
	if p == nil || p.Fixtures == "" {
		return name
	}
	rest := localPath(name)
	if !IsAddress(name) && filepath.IsAbs(rest) {
		if here, err := os.Getwd(); err == nil {
			if rel, err := filepath.Rel(here, rest); err == nil && filepath.IsLocal(rel) {
				rest = rel
			}
		}
	}
	rest = rest[len(filepath.VolumeName(rest)):]
	return filepath.Join(p.Fixtures, filepath.FromSlash(path.Clean("/"+filepath.ToSlash(rest)))) // without ..
}
