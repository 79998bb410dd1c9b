package secrets

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/qtype-dev/qtype/internal/googleauth"
	"github.com/qtype-dev/qtype/spec"
)

// newGoogle reads secrets by the method versions.access of Google Cloud Secret Manager.
func newGoogle(m *spec.GoogleSecretManager, opts Options) (source, error) {
	if err := googleauth.Allowed(opts.Policy, m.Auth.To); err != nil {
		return source{}, err
	}
	id, err := googleauth.New(m.Auth.To, opts.Getenv)
	if err != nil {
		return source{}, err
	}
	project := m.ProjectID
	if project == "" {
		if project, err = id.Project(); err != nil {
			return source{}, errors.New("no Google Cloud project: set project_id, or GOOGLE_CLOUD_PROJECT")
		}
	}
	base := strings.TrimRight(cmp.Or(m.BaseURL, "https://secretmanager.googleapis.com"), "/")
	return source{read: func(ctx context.Context, name string) (string, error) {
		path, err := googlePath(project, name)
		if err != nil {
			return "", err
		}
		var answer struct {
			Payload struct {
				Data string `json:"data"`
			} `json:"payload"`
		}
		if err := call(opts.HTTP, func() (*http.Request, error) {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/v1/"+path+":access", http.NoBody)
			if err != nil {
				return nil, errors.New("base_url is not an address")
			}
			return req, id.Authorize(req)
		}, &answer); err != nil {
			return "", err
		}
		return decoded(answer.Payload.Data)
	}}, nil
}

// googlePath returns the resource name of a version of a secret: of NAME,
// NAME/versions/VERSION, or a resource name that begins with projects/.
func googlePath(project, name string) (string, error) {
	if !strings.HasPrefix(name, "projects/") {
		name = "projects/" + project + "/secrets/" + name
	}
	if !strings.Contains(name, "/versions/") {
		name += "/versions/latest"
	}
	parts := strings.Split(name, "/")
	fits := len(parts) == 6 && parts[2] == "secrets" && parts[4] == "versions"
	for _, p := range parts {
		fits = fits && isSegment(p)
	}
	if !fits {
		return "", errors.New("the name must be NAME, NAME/versions/VERSION or projects/PROJECT/secrets/NAME")
	}
	return name, nil
}

// isSegment reports whether a part of a name can be a part of a path as it is.
func isSegment(s string) bool {
	return s != "" && s != "." && s != ".." && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") == ""
}
