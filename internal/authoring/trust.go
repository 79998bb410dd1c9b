package authoring

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/trust"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// policyVariable names the file with the policy of an organization, in place of
// policyFile.
const (
	policyVariable = "QTYPE_POLICY"
	policyFile     = "/etc/qtype/policy.yaml"
)

// load reads a document, and decides what it may reach.
func (o *Options) load(ctx context.Context, path string) (*loader.Result, *trust.Policy, diag.List) {
	limits, list := readLimits(ctx)
	if list.Errors() > 0 {
		return &loader.Result{Document: &spec.Document{}}, nil, list
	}
	policy := trust.ForDocument(path, o.Sandbox, o.Grants, limits)
	if policy == nil || policy.Level != trust.Untrusted || o.Sandbox {
		loaded, list := o.loadWith(ctx, path, policy)
		return loaded, policy, list
	}
	if o.Trusted {
		return o.loadTrusted(ctx, path, policy)
	}
	loaded, list := o.loadWith(ctx, path, policy)
	record := trust.Record{Document: path, Digest: digestOf(loaded.Files)}
	switch known, err := record.Find(trust.StateFolder()); {
	case err != nil || known == trust.Unknown:
		return loaded, policy, list
	case known == trust.Changed:
		policy.Changed = true
		loaded, list = o.loadWith(ctx, path, policy)
		return loaded, policy, list
	}
	// The second time it may read the environment. The server must send the same.
	full := *policy
	full.Level = trust.Trusted
	again, found := o.loadWith(ctx, path, &full)
	if digestOf(again.Files) != record.Digest {
		policy.Changed = true
		return loaded, policy, list
	}
	return again, &full, found
}

// loadTrusted reads a document that the user trusts, and records it.
func (o *Options) loadTrusted(ctx context.Context, path string, policy *trust.Policy) (*loader.Result, *trust.Policy, diag.List) {
	policy.Level = trust.Trusted
	loaded, list := o.loadWith(ctx, path, policy)
	if list.Errors() > 0 {
		return loaded, policy, list
	}
	record := trust.Record{Document: path, Digest: digestOf(loaded.Files)}
	if err := record.Save(trust.StateFolder()); err != nil {
		list = append(list, accessError(source.Span{}, "the document cannot be recorded as trusted: %s", err))
	}
	return loaded, policy, list
}

// loadWith reads a document with a policy.
func (o *Options) loadWith(ctx context.Context, path string, policy *trust.Policy) (*loader.Result, diag.List) {
	opts := o.Loader
	opts.Policy = policy
	return loader.Load(ctx, path, opts)
}

// digestOf returns the digest of a document and its includes.
func digestOf(files []*source.File) string {
	d := trust.NewDigest()
	for _, f := range files {
		d.Add(f.Path, f.Text)
	}
	return d.String()
}

// accessError returns an error about what documents may reach, before the document is read.
func accessError(at source.Span, format string, args ...any) diag.Diagnostic {
	return diag.Rule{Code: "QT001", Severity: diag.Error}.At(at, format, args...)
}

// readLimits reads the policy of the organization; nil if there is none.
func readLimits(ctx context.Context) (*trust.Limits, diag.List) {
	named := os.Getenv(policyVariable)
	file := cmp.Or(named, policyFile)
	if _, err := os.Stat(file); named == "" && errors.Is(err, fs.ErrNotExist) { //nolint:gosec // the user names the file
		return nil, nil
	}
	declared := &spec.AccessPolicy{}
	// A key that is written twice would leave out limits: of a policy, warnings are errors.
	if _, list := loader.LoadInto(ctx, file, "policy", declared, loader.Options{}); len(list) > 0 {
		return nil, list.AsErrors()
	}
	for i, folder := range declared.Folders {
		if !filepath.IsAbs(folder) {
			return nil, diag.List{accessError(declared.Position().Field("folders").Index(i).Span(), "the folder %q is not an absolute path", folder)}
		}
	}
	kinds := []string{spec.ContainmentBwrap, spec.ContainmentDocker, spec.ContainmentNone}
	for i, kind := range declared.Containment {
		if !slices.Contains(kinds, kind) {
			return nil, diag.List{accessError(declared.Position().Field("containment").Index(i).Span(), "unknown containment %q", kind).WithNearest(kind, kinds).
				WithHint("use %s", strings.Join(kinds, ", "))}
		}
	}
	given := func(key string, list []string) []string {
		if _, ok := declared.Position().Lookup(key); !ok {
			return nil
		}
		return append([]string{}, list...)
	}
	return &trust.Limits{File: file, Hosts: given("hosts", declared.Hosts), Folders: given("folders", declared.Folders),
		Programs: given("programs", declared.Programs), Providers: given("providers", declared.Providers),
		Containment: given("containment", declared.Containment)}, nil
}
