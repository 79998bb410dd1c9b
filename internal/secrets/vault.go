package secrets

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/accesstoken"
	"github.com/qtype-dev/qtype/spec"
)

// vault reads secrets of a key-value engine of Vault.
type vault struct {
	declared  *spec.VaultSecretManager
	opts      Options
	base      string
	namespace string
	tokens    *accesstoken.Source
}

// newVault reads secrets of Vault with a token, or with those of the auth method AppRole.
func newVault(m *spec.VaultSecretManager, opts Options) (source, error) {
	v := &vault{declared: m, opts: opts, base: strings.TrimRight(cmp.Or(m.Address, opts.Getenv("VAULT_ADDR")), "/"),
		namespace: cmp.Or(m.Namespace, opts.Getenv("VAULT_NAMESPACE"))}
	if u, err := url.Parse(v.base); err != nil || u.Host == "" {
		return source{}, errors.New("no address of Vault: set address, or VAULT_ADDR")
	}
	token, err := plain(m.Token)
	if err != nil {
		return source{}, err
	}
	token = cmp.Or(token, opts.Getenv("VAULT_TOKEN"))
	switch {
	case m.RoleID != "":
		v.tokens = accesstoken.NewSource(v.signIn)
	case token != "":
		v.tokens = accesstoken.NewSource(func(context.Context) (accesstoken.Token, error) { return accesstoken.Token{Text: token}, nil })
	default:
		return source{}, errors.New("no credentials of Vault: set token or role_id and secret_id, or VAULT_TOKEN")
	}
	return source{read: v.read}, nil
}

// read returns a secret as a JSON object, or its text if "value" is all that it has.
func (v *vault) read(ctx context.Context, name string) (string, error) {
	middle := ""
	if v.declared.KVVersion == 2 {
		middle = "data/"
	}
	for _, p := range strings.Split(name, "/") {
		if !isSegment(p) {
			return "", errors.New("the name must be a path of letters, digits and the characters -, . and _")
		}
	}
	var answer struct {
		Data json.RawMessage `json:"data"`
	}
	err := call(v.opts.HTTP, func() (*http.Request, error) {
		req, err := v.request(ctx, http.MethodGet, strings.Trim(v.declared.Mount, "/")+"/"+middle+name, nil)
		if err != nil {
			return nil, err
		}
		token, err := v.tokens.Token(ctx)
		req.Header.Set("X-Vault-Token", token)
		return req, err
	}, &answer)
	if err != nil {
		return "", err
	}
	data := answer.Data
	if v.declared.KVVersion == 2 {
		var versioned struct {
			Data json.RawMessage `json:"data"`
		}
		if json.Unmarshal(data, &versioned) != nil {
			return "", errors.New("the response has no secret: is kv_version that of the engine?")
		}
		data = versioned.Data
	}
	var values map[string]json.RawMessage
	if json.Unmarshal(data, &values) != nil || values == nil {
		return "", errors.New("the response has no secret: is kv_version that of the engine?")
	}
	var only string
	if len(values) == 1 && json.Unmarshal(values["value"], &only) == nil {
		return only, nil
	}
	return string(data), nil
}

// signIn requests a token by AppRole.
func (v *vault) signIn(ctx context.Context) (accesstoken.Token, error) {
	secret, err := plain(v.declared.SecretID)
	if err != nil {
		return accesstoken.Token{}, err
	}
	body, err := json.Marshal(map[string]string{"role_id": v.declared.RoleID, "secret_id": secret})
	if err != nil {
		return accesstoken.Token{}, err
	}
	var answer struct {
		Auth struct {
			Token   string `json:"client_token"`
			Seconds int    `json:"lease_duration"`
		} `json:"auth"`
	}
	if err := call(v.opts.HTTP, func() (*http.Request, error) { return v.request(ctx, http.MethodPost, "auth/approle/login", body) }, &answer); err != nil {
		return accesstoken.Token{}, err
	}
	if answer.Auth.Token == "" {
		return accesstoken.Token{}, errors.New("the response to the sign-in has no token")
	}
	token := accesstoken.Token{Text: answer.Auth.Token}
	if answer.Auth.Seconds > 0 {
		token.Expires = time.Now().Add(time.Duration(answer.Auth.Seconds) * time.Second)
	}
	return token, nil
}

// request makes a request for a path of the server's API.
func (v *vault) request(ctx context.Context, method, path string, body []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, v.base+"/v1/"+path, bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("address or mount cannot be parts of an address")
	}
	if v.namespace != "" {
		req.Header.Set("X-Vault-Namespace", v.namespace)
	}
	return req, nil
}
