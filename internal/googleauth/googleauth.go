// Package googleauth gets access tokens for the Google Cloud identity of a document:
// a service account, a configuration of gcloud, federated identities, or the identity of
// the machine.
package googleauth

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"github.com/qtype-dev/qtype/internal/accesstoken"
	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/internal/trust"
	"github.com/qtype-dev/qtype/spec"
)

// scope allows everything that the roles of the identity allow.
const scope = "https://www.googleapis.com/auth/cloud-platform"

// Identity is a Google Cloud identity. It is safe for concurrent use.
type Identity struct {
	name    string // for messages
	project string
	region  string
	tokens  *accesstoken.Source
}

// finder finds the parts of an identity.
type finder struct {
	auth   *spec.VertexAuth
	getenv func(string) string
	gcloud string // folder of the configuration of gcloud
	http   *http.Client
}

// New makes an Identity. What the auth does not set comes from the environment: the file of
// GOOGLE_APPLICATION_CREDENTIALS, that of gcloud auth application-default login, or the
// service account of the machine. It calls no server.
func New(auth *spec.VertexAuth, getenv func(string) string) (*Identity, error) {
	if getenv == nil {
		getenv = os.Getenv
	}
	id := &Identity{name: "the Google credentials of the environment"}
	if auth != nil {
		id.name = "auth " + auth.ID
	} else {
		auth = &spec.VertexAuth{}
	}
	f := finder{auth: auth, getenv: getenv, gcloud: gcloudFolder(getenv), http: accesstoken.Client()}
	path, named, settings, err := f.credentials()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", id.name, err)
	}
	fetch := f.machineToken(id.name)
	if path != "" {
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("%s: cannot read %s: %w", id.name, named, textfmt.WithoutPath(err))
		}
		var file struct {
			Project string `json:"project_id"`
			Quota   string `json:"quota_project_id"`
			Type    string `json:"type"`
			Key     string `json:"private_key"`
		}
		if json.Unmarshal(raw, &file) != nil {
			return nil, fmt.Errorf("%s: %s is not a JSON file with credentials", id.name, named)
		}
		if file.Type == "service_account" && file.Key == "" {
			return nil, fmt.Errorf("%s: %s is a service account without private_key", id.name, named)
		}
		settings.project = cmp.Or(settings.project, file.Project, file.Quota)
		fetch = f.fileToken(id.name, named, raw)
	}
	id.project = cmp.Or(auth.ProjectID, getenv("GOOGLE_CLOUD_PROJECT"), settings.project)
	id.region = cmp.Or(auth.Region, getenv("GOOGLE_CLOUD_LOCATION"), getenv("GOOGLE_CLOUD_REGION"), settings.region, "us-central1")
	id.tokens = accesstoken.NewSource(fetch)
	return id, nil
}

// Allowed returns an error if a document may not use the credentials that it names, those
// of the environment or of a file.
func Allowed(p *trust.Policy, auth *spec.VertexAuth) error {
	if auth != nil && auth.ServiceAccountFile != "" {
		return p.Read(auth.ServiceAccountFile)
	}
	return p.Identity("the Google credentials of the environment")
}

// Name returns what the credentials are, for messages.
func (id *Identity) Name() string { return id.name }

// Project returns the project of the identity.
func (id *Identity) Project() (string, error) {
	if id.project == "" {
		return "", errors.New("no Google Cloud project: set project_id in the auth, or GOOGLE_CLOUD_PROJECT")
	}
	return id.project, nil
}

// Region returns the region of the identity.
func (id *Identity) Region() string { return id.region }

// Authorize adds a token to a request.
func (id *Identity) Authorize(req *http.Request) error {
	token, err := id.tokens.Token(req.Context())
	if err == nil {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return err
}

// settings are those of a configuration of gcloud.
type settings struct{ account, project, region string }

// credentials returns the file with the credentials, empty for those of the machine, what messages
// call it, and the settings of gcloud.
func (f finder) credentials() (path, named string, s settings, err error) {
	if path = f.auth.ServiceAccountFile; path != "" {
		return path, path, s, nil
	}
	if name := f.auth.ProfileName; name != "" {
		var found bool
		if s, found = f.configuration(name); !found {
			s.project = name
		}
		if s.account != "" {
			if file := filepath.Join(f.gcloud, "legacy_credentials", s.account, "adc.json"); isFile(file) {
				return file, file, s, nil
			}
			return "", "", s, fmt.Errorf("the configuration %s of gcloud has no credentials for %s; run gcloud auth login", name, s.account)
		}
	}
	if file := f.getenv("GOOGLE_APPLICATION_CREDENTIALS"); file != "" {
		return file, "the file of GOOGLE_APPLICATION_CREDENTIALS", s, nil // variables of that name are secrets in messages
	}
	if file := filepath.Join(f.gcloud, "application_default_credentials.json"); isFile(file) {
		return file, file, s, nil
	}
	return "", "", s, nil
}

// configuration reads a configuration of gcloud, an INI file.
func (f finder) configuration(name string) (s settings, found bool) {
	if !filepath.IsLocal(name) || strings.ContainsAny(name, `/\`) {
		return s, false
	}
	raw, err := os.ReadFile(filepath.Join(f.gcloud, "configurations", "config_"+name))
	if err != nil {
		return s, false
	}
	section := ""
	for line := range strings.SplitSeq(string(raw), "\n") {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			section = strings.Trim(line, "[]")
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		switch value = strings.TrimSpace(value); section + "/" + strings.TrimSpace(key) {
		case "core/account":
			s.account = value
		case "core/project":
			s.project = value
		case "compute/region":
			s.region = value
		}
	}
	return s, true
}

// gcloudFolder returns the folder of the configuration of gcloud.
func gcloudFolder(getenv func(string) string) string {
	if folder := getenv("CLOUDSDK_CONFIG"); folder != "" {
		return folder
	}
	if folder := getenv("APPDATA"); folder != "" {
		return filepath.Join(folder, "gcloud")
	}
	return filepath.Join(getenv("HOME"), ".config", "gcloud")
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// fileToken requests tokens with the credentials of a file: the key of a service account,
// the login of a person, an impersonation, or a federated identity.
func (f finder) fileToken(identity, named string, raw []byte) func(context.Context) (accesstoken.Token, error) {
	return func(ctx context.Context) (accesstoken.Token, error) {
		within := context.WithValue(ctx, oauth2.HTTPClient, f.http)
		//nolint:staticcheck // all types of files are allowed: the user of the machine or the document names the file
		credentials, err := google.CredentialsFromJSON(within, raw, scope)
		if err != nil {
			return accesstoken.Token{}, &accesstoken.Error{Identity: identity, Message: named + ": " + httpx.SingleLine(err.Error(), 200)}
		}
		token, err := credentials.TokenSource.Token()
		if err != nil {
			return accesstoken.Token{}, tokenError(ctx, identity, err)
		}
		return accesstoken.Token{Text: token.AccessToken, Expires: token.Expiry}, nil
	}
}

// tokenError describes in one line what the token server did.
func tokenError(ctx context.Context, identity string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var answer *oauth2.RetrieveError
	if !errors.As(err, &answer) {
		return &accesstoken.Error{Identity: identity, Message: httpx.Reason(err), Again: true}
	}
	text := fmt.Sprintf("HTTP %d: %s", answer.Response.StatusCode, cmp.Or(answer.ErrorDescription, answer.ErrorCode, httpx.Excerpt(string(answer.Body), 300)))
	return &accesstoken.Error{Identity: identity, Message: httpx.SingleLine(text, 300), Again: answer.Response.StatusCode >= 500}
}

// machineToken requests tokens for the service account of the machine or the container.
func (f finder) machineToken(identity string) func(context.Context) (accesstoken.Token, error) {
	host := cmp.Or(f.getenv("GCE_METADATA_HOST"), "169.254.169.254")
	client := *f.http
	client.Timeout = 5 * time.Second // machines outside of Google Cloud have no such server
	return func(ctx context.Context) (accesstoken.Token, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+"/computeMetadata/v1/instance/service-accounts/default/token?scopes="+scope, http.NoBody)
		if err != nil {
			return accesstoken.Token{}, &accesstoken.Error{Identity: identity, Message: "GCE_METADATA_HOST is not a host"}
		}
		req.Header.Set("Metadata-Flavor", "Google")
		var answer struct {
			Token   string `json:"access_token"`
			Seconds int    `json:"expires_in"`
		}
		if err := accesstoken.Request(&client, req, identity, "", &answer); err != nil {
			return accesstoken.Token{}, err
		}
		return accesstoken.Token{Text: answer.Token, Expires: time.Now().Add(time.Duration(answer.Seconds) * time.Second)}, nil
	}
}
