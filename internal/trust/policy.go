// Package trust decides what a document may reach: files, environment variables,
// programs, servers and credentials. Each package that opens one of them for a document
// calls the Policy of the document first; no other package decides.
//
// A nil *Policy allows everything: a trusted document of a user without an organization.
package trust

import (
	"context"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// Level is how far a document is trusted.
type Level int

// The levels.
const (
	Trusted   Level = iota // a local file, or a document that the user has trusted
	Sandboxed              // a local file that the user has restricted, by --sandbox
	Untrusted              // a document from an address
)

// Policy is what one document may reach. It is not changed once it is used, so that it is
// safe for concurrent use.
type Policy struct {
	Level  Level
	Base   string  // folder or address below which the document may read; empty for none
	Origin string  // host and port of the address of the document; empty for a local file
	Grants Grants  // what the user allows in addition
	Limits *Limits // what the organization allows at most; nil for no limit

	Seen *Seen // the addresses of Origin and Grants.Hosts when the document was read; nil for no comparison

	Changed bool // the user has trusted another version of the document

	Fixtures string // the folder of a test in which all files of the document are; empty for none
}

// Grants are what a user allows a restricted document. The flags of the command have the
// same names.
type Grants struct {
	Env      []string // names of environment variables
	Read     []string // files and folders
	Programs []string // programs, as the document names them
	Hosts    []string // HOST or HOST:PORT, also private ones and those of databases
	OutDir   string   // the folder for all files that the document writes
}

// Limits are what an organization allows all documents. A nil list has no limit, an empty
// one allows nothing.
type Limits struct {
	File      string   // the file that declares them, for messages
	Hosts     []string // HOST, HOST:PORT or *.DOMAIN
	Folders   []string // where documents read and write
	Programs  []string // programs, as documents name them
	Providers []string // providers of models

	Containment []string // how programs of tools are contained: bwrap, docker or none
}

// Restricted reports whether the document reaches only what is granted.
func (p *Policy) Restricted() bool { return p != nil && p.Level != Trusted }

// IsRemote reports whether the document is from an address.
func (p *Policy) IsRemote() bool { return p != nil && IsAddress(p.Base) }

// Env returns an error if the document may not have an environment variable.
func (p *Policy) Env(name string) error {
	if !p.Restricted() || slices.Contains(p.Grants.Env, name) {
		return nil
	}
	return p.refuse("read the environment variable "+name, "--env "+name)
}

// Getenv returns the environment that the document sees: variables that it may not have
// are empty.
func (p *Policy) Getenv(getenv func(string) string) func(string) string {
	if !p.Restricted() {
		return getenv
	}
	return func(name string) string {
		if p.Env(name) != nil {
			return ""
		}
		return getenv(name)
	}
}

// Program returns an error if the document may not start a program, by the name that the
// document has for it.
func (p *Policy) Program(name string) error {
	switch {
	case p == nil:
		return nil
	case p.Limits != nil && p.Limits.Programs != nil && !slices.Contains(p.Limits.Programs, name):
		return p.Limits.refuse("start the program "+name, "programs")
	case !p.Restricted() || slices.Contains(p.Grants.Programs, name):
		return nil
	}
	return p.refuse("start the program "+name, "--allow-program "+name)
}

// Containment returns an error if the organization does not allow programs of tools with a
// type of containment, none for no containment.
func (p *Policy) Containment(kind string) error {
	if p == nil || p.Limits == nil || p.Limits.Containment == nil || slices.Contains(p.Limits.Containment, kind) {
		return nil
	}
	action := "start a program with containment of type " + kind
	if kind == "none" {
		action = "start a program without containment"
	}
	return p.Limits.refuse(action, "containment")
}

// Provider returns an error if the organization does not allow a provider of models.
func (p *Policy) Provider(name string) error {
	if p == nil || p.Limits == nil || p.Limits.Providers == nil || slices.Contains(p.Limits.Providers, name) {
		return nil
	}
	return p.Limits.refuse("use the provider "+name, "providers")
}

// Credential returns an error if the document may not send a credential of the user to a
// server. own reports whether the server is one of those that the credential is for and not
// one that the document chose; the name is that of an environment variable, or what the
// credential is, such as the AWS credentials of the environment.
func (p *Policy) Credential(name, server string, own bool) error {
	if !p.Restricted() || own || slices.Contains(p.Grants.Env, name) {
		return nil
	}
	flag := ""
	if !strings.Contains(name, " ") {
		flag = "--env " + name
	}
	return p.refuse("send "+name+" to "+server, flag)
}

// Identity returns an error if the document may not use an identity of the user that it
// does not hold itself, such as the AWS credentials of the environment.
func (p *Policy) Identity(name string) error {
	if !p.Restricted() {
		return nil
	}
	return p.refuse("use "+name, "")
}

// Address returns an error if the document may not call the server of an http or https
// address. Names of private servers are recognized by Dial.
func (p *Policy) Address(u *url.URL) error {
	if p == nil {
		return nil
	}
	host := HostPort(u)
	if err := p.Limits.host(host); err != nil {
		return err
	}
	if !p.Restricted() || p.knows(host) {
		return nil
	}
	if IsPrivateHost(u.Hostname()) {
		return p.refuse("call the private server "+host, "--allow-host "+host)
	}
	return nil
}

// AllowsPrivate reports whether the document may call a server that has a private address.
func (p *Policy) AllowsPrivate(u *url.URL) bool { return !p.Restricted() || p.knows(HostPort(u)) }

// Service returns an error if the document may not call a server by another protocol than
// http, such as that of a database: clients send the credentials that they find for it.
func (p *Policy) Service(host string) error {
	if p == nil {
		return nil
	}
	if err := p.Limits.host(host); err != nil {
		return err
	}
	if !p.Restricted() || p.knows(host) && !strings.EqualFold(host, p.Origin) {
		return nil
	}
	return p.refuse("call the server "+host, "--allow-host "+host)
}

// Dial returns an error if the document may not connect to the resolved address of a
// server. host is the name and port before the resolution.
func (p *Policy) Dial(host, resolved string) error {
	if !p.Restricted() {
		return nil
	}
	to, err := netip.ParseAddrPort(resolved)
	switch {
	case err == nil && !IsPrivate(to.Addr()):
		return nil
	case err == nil && p.knows(host) && p.isSeen(host, to.Addr()):
		return nil
	case err == nil && p.knows(host):
		return p.refuse("call the private address "+to.Addr().String()+", which "+host+" did not have when the document was read", "--allow-host "+to.Addr().String())
	}
	return p.refuse("call the private server "+host, "--allow-host "+host)
}

// Unresolved returns the error for a server whose name only a proxy can resolve, so that its
// address cannot be checked; nil if the document may call it at any address.
func (p *Policy) Unresolved(u *url.URL) error {
	if p.AllowsPrivate(u) {
		return nil
	}
	return p.refuse("call the server "+HostPort(u)+", whose address cannot be checked before the proxy resolves its name", "--allow-host "+u.Hostname())
}

// knows reports whether the user has granted a host, or the document is from it.
func (p *Policy) knows(host string) bool {
	return p.Origin != "" && strings.EqualFold(host, p.Origin) || matchesHost(p.Grants.Hosts, host)
}

// host returns an error if the organization does not allow a host.
func (l *Limits) host(host string) error {
	if l == nil || l.Hosts == nil || matchesHost(l.Hosts, host) {
		return nil
	}
	return l.refuse("call the server "+host, "hosts")
}

// matchesHost reports whether a list has a host with its port, its name, or a *. pattern of
// its domain.
func matchesHost(list []string, host string) bool {
	name, ok := splitPort(host)
	if !ok {
		name = host
	}
	return slices.ContainsFunc(list, func(entry string) bool {
		if domain, ok := strings.CutPrefix(entry, "*."); ok {
			return len(name) > len(domain)+1 && strings.EqualFold(name[len(name)-len(domain)-1:], "."+domain)
		}
		return strings.EqualFold(entry, host) || strings.EqualFold(strings.Trim(entry, "[]"), name)
	})
}

// HostPort returns the host and the port of an address.
func HostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[strings.ToLower(u.Scheme)]
	}
	return joinPort(u.Hostname(), port)
}

// IsAddress reports whether a path is an address with a scheme, other than that of a file.
func IsAddress(path string) bool {
	switch scheme, _ := splitScheme(path); scheme {
	case "", "file", "local":
		return false
	}
	return true
}

// splitScheme separates the scheme of an address, in lower case, from the rest, as package
// remotefs does. A path has none.
func splitScheme(path string) (scheme, rest string) {
	scheme, rest, found := strings.Cut(path, "://")
	if !found || len(scheme) < 2 || strings.ContainsFunc(scheme, notInScheme) {
		return "", path
	}
	return strings.ToLower(scheme), rest
}

func notInScheme(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '+' && r != '-' && r != '.'
}

// ForDocument returns the policy of the document at a path: an address is untrusted, a
// local file is trusted unless it is sandboxed.
func ForDocument(path string, sandbox bool, grants Grants, limits *Limits) *Policy {
	p := &Policy{Grants: grants, Limits: limits, Seen: &Seen{}}
	switch {
	case IsAddress(path):
		p.Level = Untrusted
		if at := strings.LastIndexByte(path, '/'); at > 0 {
			p.Base = path[:at+1]
		}
		if u, err := url.Parse(path); err == nil && (u.Scheme == "http" || u.Scheme == "https") {
			p.Origin = HostPort(u)
		}
	case sandbox:
		p.Level, p.Base = Sandboxed, filepath.Dir(localPath(path))
	case limits == nil && grants.OutDir == "":
		return nil
	}
	return p
}

// Below returns the path or address of a file that is named by a value: a relative path is
// below base, a folder or an address. The result may still be outside of base; see IsBelow.
func Below(base, name string) string {
	switch {
	case IsAddress(name), filepath.IsAbs(localPath(name)):
		return name
	case !IsAddress(base):
		return filepath.Join(localPath(base), localPath(name))
	case !isWeb(base):
		return strings.TrimSuffix(base, "/") + "/" + name
	}
	u, err := url.Parse(base)
	if err != nil {
		return name // IsBelow refuses it
	}
	u.Path, u.RawPath = strings.TrimSuffix(u.Path, "/")+"/"+name, ""
	return u.String()
}

// IsBelow reports whether a path or an address is below base, a folder or an address.
// Symbolic links are resolved. An address with a segment .. is not below any other.
func IsBelow(base, name string) bool {
	switch {
	case IsAddress(base) != IsAddress(name):
		return false
	case !IsAddress(base):
		return IsWithin(localPath(base), localPath(name))
	case isWeb(base):
		return isBelowURL(base, name)
	}
	return strings.HasPrefix(name, strings.TrimSuffix(base, "/")+"/") && hasNoParent(name)
}

// isBelowURL is IsBelow of http and https addresses. The query of base does not count.
func isBelowURL(base, name string) bool {
	border, err := url.Parse(base)
	if err != nil {
		return false
	}
	u, err := url.Parse(name)
	if err != nil || !strings.EqualFold(u.Scheme, border.Scheme) || !strings.EqualFold(HostPort(u), HostPort(border)) ||
		u.User.String() != border.User.String() {
		return false
	}
	decoded, err := url.PathUnescape(u.Path) // some servers decode a path twice
	return err == nil && strings.HasPrefix(u.Path, strings.TrimSuffix(border.Path, "/")+"/") && hasNoParent(u.Path) && hasNoParent(decoded)
}

// hasNoParent reports whether no segment of a path leads to the folder above it.
func hasNoParent(path string) bool {
	return !slices.Contains(strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' }), "..")
}

// isWeb reports whether an address has the scheme http or https.
func isWeb(address string) bool {
	scheme, _ := splitScheme(address)
	return scheme == "http" || scheme == "https"
}

type policyKey struct{}

// With returns a context of what is done for a document.
func With(ctx context.Context, p *Policy) context.Context {
	if p == nil {
		return ctx
	}
	return context.WithValue(ctx, policyKey{}, p)
}

// ForUser returns a context of what the user does with the inputs of a document, whose
// files the user has named.
func ForUser(ctx context.Context) context.Context {
	if From(ctx) == nil {
		return ctx
	}
	return context.WithValue(ctx, policyKey{}, (*Policy)(nil))
}

// From returns the policy of the document for which something is done; nil if there is
// none, which allows everything.
func From(ctx context.Context) *Policy {
	p, _ := ctx.Value(policyKey{}).(*Policy)
	return p
}
