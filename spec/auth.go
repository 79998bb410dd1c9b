package spec

import (
	"fmt"
	"net/url"
	"strings"
	"unicode"
)

// Auth is a set of credentials that models and tools use by id.
type Auth interface {
	Entity
	auth() // marks the kinds of credentials
}

// AuthBase holds what all kinds of credentials share.
type AuthBase struct {
	Positioned
	// ID is the credentials' unique name in the document.
	ID string `yaml:"id" jsonschema:"required"`
}

// EntityID is the id.
func (a *AuthBase) EntityID() string { return a.ID }

// Kind is KindAuth.
func (a *AuthBase) Kind() Kind { return KindAuth }
func (*AuthBase) auth()        {}

// APIKeyAuth is an API key.
type APIKeyAuth struct {
	AuthBase
	// APIKey is the key, mostly ${VAR} or a secret.
	APIKey Secret `yaml:"api_key" jsonschema:"required"`
	// Host is the base URL that the key belongs to.
	Host string `yaml:"host"`
	// Header is the header that carries the key to a tool's server; X-API-Key if neither header nor query is set.
	Header string `yaml:"header"`
	// Query is the query parameter that carries the key to a tool's server instead of a header.
	Query string `yaml:"query"`
}

// BasicAuth is a user and a password, sent as Authorization: Basic.
type BasicAuth struct {
	AuthBase
	// Username is the user.
	Username string `yaml:"username" jsonschema:"required"`
	// Password is the user's password, mostly ${VAR} or a secret.
	Password Secret `yaml:"password" jsonschema:"required"`
}

// BearerTokenAuth is a token sent as Authorization: Bearer.
type BearerTokenAuth struct {
	AuthBase
	// Token is the token, mostly ${VAR} or a secret.
	Token Secret `yaml:"token" jsonschema:"required"`
}

// OAuth2Auth is a client-credentials grant (RFC 6749): tokens are requested from token_url and cached until they expire.
type OAuth2Auth struct {
	AuthBase
	// ClientID is the client's public name.
	ClientID string `yaml:"client_id" jsonschema:"required"`
	// ClientSecret is the client's secret.
	ClientSecret Secret `yaml:"client_secret" jsonschema:"required"`
	// TokenURL is the address that issues tokens.
	TokenURL string `yaml:"token_url" jsonschema:"required"`
	// Scopes are what the token should allow.
	Scopes []string `yaml:"scopes"`
	// Resource is the address of the server that the token is for (RFC 8707), such as the URL of an MCP server. Without it, the token server decides.
	Resource string `yaml:"resource" validate:"omitempty,http_url"`
}

// OAuth2LoginAuth is the account of a person at an MCP server: qtype login signs in with a browser at the authorization server that the MCP server names (authorization code with PKCE, RFC 9728), and keeps the tokens for later runs.
type OAuth2LoginAuth struct {
	AuthBase
	// ClientID is a client that is registered at the authorization server. The default is to register one (RFC 7591).
	ClientID string `yaml:"client_id"`
	// ClientSecret is the secret of client_id, which needs an issuer. Programs on computers of users mostly have none.
	ClientSecret Secret `yaml:"client_secret"`
	// Issuer is the authorization server at which client_id is registered; a sign-in at another one is refused.
	Issuer string `yaml:"issuer" validate:"omitempty,http_url"`
	// Scopes are what the tokens should allow. The default is what the MCP server requests.
	Scopes []string `yaml:"scopes"`
	// RedirectPort is the loopback port to which the browser returns, for clients that are registered with one. The default is a free port.
	RedirectPort int `yaml:"redirect_port" validate:"gte=0,lte=65535"`
}

// LoginAuth is an auth with which a user logs in to a database.
type LoginAuth interface {
	Auth
	// Login returns the user, empty for that of the database's URL, and the password.
	Login() (user string, password Secret)
}

// Login returns the user and the password.
func (a *BasicAuth) Login() (user string, password Secret) { return a.Username, a.Password }

// Login returns the token as the password of the URL's user.
func (a *BearerTokenAuth) Login() (user string, password Secret) { return "", a.Token }

// AWSAuth is an AWS identity.
type AWSAuth struct {
	AuthBase
	// AccessKeyID is the first half of a key pair.
	AccessKeyID Secret `yaml:"access_key_id" secret:"name"`
	// SecretAccessKey is the second half of a key pair.
	SecretAccessKey Secret `yaml:"secret_access_key"`
	// SessionToken completes temporary credentials.
	SessionToken Secret `yaml:"session_token"`
	// ProfileName is a profile of the AWS configuration files.
	ProfileName string `yaml:"profile_name"`
	// RoleARN is a role to assume.
	RoleARN string `yaml:"role_arn"`
	// RoleSessionName names the assumed role's session.
	RoleSessionName string `yaml:"role_session_name"`
	// ExternalID is the external id that the role requires.
	ExternalID string `yaml:"external_id"`
	// Region is the AWS region.
	Region string `yaml:"region"`
}

// IdentityNode is a node for which requests are signed with an identity of a cloud.
type IdentityNode interface {
	Node
	// CloudIdentity is the type of the identity's auth; empty for none, or where the auth is another node.
	CloudIdentity() string
}

const awsIdentity = "aws"

// CloudIdentity is aws.
func (*AWSAuth) CloudIdentity() string { return awsIdentity }

// VertexAuth is a Google Cloud identity: that of a service account, of a configuration of gcloud, or with a project only that of the environment.
type VertexAuth struct {
	AuthBase
	// ProfileName is a configuration of gcloud. If there is none of that name, it is the project, as in QType (Python).
	ProfileName string `yaml:"profile_name"`
	// ProjectID is the Google Cloud project. The default is GOOGLE_CLOUD_PROJECT, and then the project of the key file or of gcloud.
	ProjectID string `yaml:"project_id"`
	// ServiceAccountFile is the path of a service account's key file.
	ServiceAccountFile string `yaml:"service_account_file"`
	// Region is the Google Cloud region, or global. The default is GOOGLE_CLOUD_LOCATION, and then us-central1.
	Region string `yaml:"region"`
}

// AzureAuth is a Microsoft Entra ID identity: a service principal with a secret or a federated token, or the managed identity of the machine.
type AzureAuth struct {
	AuthBase
	// TenantID is the directory. The default is AZURE_TENANT_ID.
	TenantID string `yaml:"tenant_id"`
	// ClientID is the application, or the user-assigned managed identity. The default is AZURE_CLIENT_ID.
	ClientID string `yaml:"client_id"`
	// ClientSecret is the secret of the application. The default is AZURE_CLIENT_SECRET.
	ClientSecret Secret `yaml:"client_secret"`
	// FederatedTokenFile is the file with the token that a workload identity is exchanged for. The default is AZURE_FEDERATED_TOKEN_FILE.
	FederatedTokenFile string `yaml:"federated_token_file"`
	// AuthorityHost is the address of Entra ID, for national clouds. The default is AZURE_AUTHORITY_HOST, and then https://login.microsoftonline.com.
	AuthorityHost string `yaml:"authority_host" validate:"omitempty,http_url"`
}

// SecretManager resolves the secrets that a document names.
type SecretManager interface {
	Entity
	// Identity is the declared identity that may read the secrets, nil for none.
	Identity() Auth
	secretManager() // marks the kinds of secret managers
}

// AWSSecretManager reads secrets from AWS Secrets Manager.
type AWSSecretManager struct {
	Positioned
	// ID is the secret manager's unique name.
	ID string `yaml:"id" jsonschema:"required"`
	// Auth is the id of the AWS identity that may read the secrets.
	Auth Ref[Auth] `yaml:"auth" jsonschema:"required"`
}

// EntityID is the id.
func (s *AWSSecretManager) EntityID() string { return s.ID }

// Kind is KindSecretManager.
func (s *AWSSecretManager) Kind() Kind   { return KindSecretManager }
func (*AWSSecretManager) secretManager() {}

// Identity is the AWS identity.
func (s *AWSSecretManager) Identity() Auth { return s.Auth.To }

// GoogleSecretManager reads secrets from Google Cloud Secret Manager. The name of a secret is that in the project, with /versions/N for another version than the latest, or the whole resource name.
type GoogleSecretManager struct {
	Positioned
	// ID is the secret manager's unique name.
	ID string `yaml:"id" jsonschema:"required"`
	// Auth is the id of the Google identity that may read the secrets. The default is that of the environment.
	Auth Ref[*VertexAuth] `yaml:"auth"`
	// ProjectID is the project of the secrets. The default is that of the identity.
	ProjectID string `yaml:"project_id"`
	// BaseURL is the address before /v1/projects. The default is https://secretmanager.googleapis.com.
	BaseURL string `yaml:"base_url" validate:"omitempty,http_url"`
}

// EntityID is the id.
func (s *GoogleSecretManager) EntityID() string { return s.ID }

// Kind is KindSecretManager.
func (s *GoogleSecretManager) Kind() Kind   { return KindSecretManager }
func (*GoogleSecretManager) secretManager() {}

// Identity is the Google identity.
func (s *GoogleSecretManager) Identity() Auth { return linkedAuth(s.Auth) }

// AzureKeyVault reads secrets from Azure Key Vault. The name of a secret may end with /VERSION.
type AzureKeyVault struct {
	Positioned
	// ID is the secret manager's unique name.
	ID string `yaml:"id" jsonschema:"required"`
	// VaultURL is the address of the vault, such as https://shop.vault.azure.net.
	VaultURL string `yaml:"vault_url" jsonschema:"required" validate:"omitempty,http_url"`
	// Auth is the id of the Entra ID identity that may read the secrets. The default is that of the environment.
	Auth Ref[*AzureAuth] `yaml:"auth"`
}

// EntityID is the id.
func (s *AzureKeyVault) EntityID() string { return s.ID }

// Kind is KindSecretManager.
func (s *AzureKeyVault) Kind() Kind   { return KindSecretManager }
func (*AzureKeyVault) secretManager() {}

// Identity is the Entra ID identity.
func (s *AzureKeyVault) Identity() Auth { return linkedAuth(s.Auth) }

// linkedAuth returns the auth of a reference, nil for none: not an interface with a nil pointer.
func linkedAuth[A interface {
	comparable
	Auth
}](r Ref[A]) Auth {
	var none A
	if r.To == none {
		return nil
	}
	return r.To
}

// VaultSecretManager reads secrets from a key-value engine of HashiCorp Vault or OpenBao. The name of a secret is its path in the engine; key selects one of its values.
type VaultSecretManager struct {
	Positioned
	// ID is the secret manager's unique name.
	ID string `yaml:"id" jsonschema:"required"`
	// Address is the address of the server. The default is VAULT_ADDR.
	Address string `yaml:"address" validate:"omitempty,http_url"`
	// Mount is the path of the key-value engine.
	Mount string `yaml:"mount" default:"secret"`
	// KVVersion is the version of the engine, 1 or 2.
	KVVersion int `yaml:"kv_version" default:"2" validate:"oneof=1 2"`
	// Namespace is the namespace of Vault Enterprise. The default is VAULT_NAMESPACE.
	Namespace string `yaml:"namespace"`
	// Token is the token for the server. The default is VAULT_TOKEN.
	Token Secret `yaml:"token"`
	// RoleID signs in by the auth method AppRole, with secret_id.
	RoleID string `yaml:"role_id"`
	// SecretID is the secret of role_id.
	SecretID Secret `yaml:"secret_id"`
}

// EntityID is the id.
func (s *VaultSecretManager) EntityID() string { return s.ID }

// Kind is KindSecretManager.
func (s *VaultSecretManager) Kind() Kind   { return KindSecretManager }
func (*VaultSecretManager) secretManager() {}

// Identity is nil: Vault has separate credentials.
func (*VaultSecretManager) Identity() Auth { return nil }

// EnvSecretManager reads secrets from environment variables.
type EnvSecretManager struct {
	Positioned
	// ID is the secret manager's unique name.
	ID string `yaml:"id" jsonschema:"required"`
	// Prefix is prepended to a secret's name: with APP_ the secret token is read from the variable APP_token.
	Prefix string `yaml:"prefix"`
}

// EntityID is the id.
func (s *EnvSecretManager) EntityID() string { return s.ID }

// Kind is KindSecretManager.
func (s *EnvSecretManager) Kind() Kind   { return KindSecretManager }
func (*EnvSecretManager) secretManager() {}

// Identity is nil.
func (*EnvSecretManager) Identity() Auth { return nil }

// FileSecretManager reads secrets from files, one for each secret, as Docker and Kubernetes mount them.
type FileSecretManager struct {
	Positioned
	// ID is the secret manager's unique name.
	ID string `yaml:"id" jsonschema:"required"`
	// Directory is the folder of the files; the name of a secret is its file name.
	Directory string `yaml:"directory" default:"/run/secrets"`
}

// EntityID is the id.
func (s *FileSecretManager) EntityID() string { return s.ID }

// Kind is KindSecretManager.
func (s *FileSecretManager) Kind() Kind   { return KindSecretManager }
func (*FileSecretManager) secretManager() {}

// Identity is nil.
func (*FileSecretManager) Identity() Auth { return nil }

// Telemetry is where traces are sent.
type Telemetry struct {
	Positioned
	// ID is the sink's unique name.
	ID string `yaml:"id" jsonschema:"required"`
	// Provider is the kind of sink: Phoenix, Langfuse, Arize, or OTLP for every collector that accepts OpenTelemetry's protocol.
	Provider string `yaml:"provider" default:"Phoenix" validate:"oneof=Phoenix Langfuse Arize OTLP"`
	// Endpoint is the sink's URL.
	Endpoint Secret `yaml:"endpoint" jsonschema:"required" secret:"url"`
	// Auth is the id of the credentials for the sink.
	Auth Ref[Auth] `yaml:"auth"`
	// Args are further settings of the provider.
	Args map[string]any `yaml:"args"`
}

// EntityID is the id.
func (t *Telemetry) EntityID() string { return t.ID }

// Kind is KindTelemetry.
func (t *Telemetry) Kind() Kind { return KindTelemetry }

// The functions of this file decide whether the credentials of an auth can be used. The
// validator calls them with texts of the document, and a run with the texts of secrets.

// notInHeader is a problem of a text that must not be part of a message.
const notInHeader = "contains a character that is not allowed in a header"

// SentSecret returns the secret of an auth that tools send, and its key; false if the type
// of auth has none.
func SentSecret(auth Auth) (key string, s Secret, ok bool) {
	switch a := auth.(type) {
	case *APIKeyAuth:
		return "api_key", a.APIKey, true
	case *BearerTokenAuth:
		return "token", a.Token, true
	case *BasicAuth:
		return "password", a.Password, true
	case *OAuth2Auth:
		return "client_secret", a.ClientSecret, true
	}
	return "", Secret{}, false
}

// ToolKeyProblem returns why tools cannot send a key, a token or a password; empty if they can.
func ToolKeyProblem(text string) string {
	switch {
	case text == "":
		return "is empty"
	case !IsHeaderValue(text) || strings.ContainsRune(text, '\t'):
		return notInHeader + " (trailing newline?)"
	}
	return ""
}

// KeyProblem returns why a key, a token or a password cannot be sent to the server of a
// model or an index, which ignore white space around it; empty if it can.
func KeyProblem(text string) string {
	if strings.ContainsFunc(strings.TrimSpace(text), unicode.IsControl) {
		return notInHeader
	}
	return ""
}

// KeyConflict returns the key of an auth that calls of the model cannot use, and what is
// wrong with it; both are empty if they can. text is the secret of the auth.
func (m *Model) KeyConflict(auth KeyAuth, text string) (key, problem string) {
	_, host := auth.ModelKey()
	key, _, _ = SentSecret(auth)
	if problem := KeyProblem(text); problem != "" {
		return key, problem
	}
	switch {
	case m.BaseURL != "":
		return "", ""
	case host != "" && !IsHTTPAddress(host):
		return "host", "has a host that is not an http or https address"
	case host == "" && strings.TrimSpace(text) == "": // another server than the provider's own may need none
		return key, "holds an empty key"
	}
	return "", ""
}

// HostConflict returns why tools cannot send the key to an endpoint: the host is no URL, or
// the endpoint is at another one; empty if they can.
func (a *APIKeyAuth) HostConflict(endpoint string) string {
	if a.Host == "" {
		return ""
	}
	host, err := url.Parse(a.Host)
	if err != nil || host.Host == "" {
		return "has a host that is not a URL"
	}
	parts, _ := ParseEndpoint(endpoint)
	u, err := url.Parse(StaticEndpoint(parts))
	if err != nil || u.Host != host.Host || u.Scheme != host.Scheme {
		return fmt.Sprintf("belongs to %s://%s, but the endpoint is at %s", host.Scheme, host.Host, origin(u))
	}
	return ""
}

// origin returns the scheme and the host of a URL, which may be nil.
func origin(u *url.URL) string {
	if u == nil {
		return "another address"
	}
	return u.Scheme + "://" + u.Host
}

// redacted replaces a secret wherever it is printed.
const redacted = "***"

// Secret is a confidential value: a text (mostly ${VAR}) or a reference to the
// secret manager. It prints as *** in every form.
type Secret struct {
	text    string
	written bool
	Ref     *SecretReference // set if the document names a secret of the secret manager
}

// NewSecret wraps a text.
func NewSecret(text string) Secret { return Secret{text: text} }

// NewLiteralSecret wraps a text that is written in the document itself, possibly an empty one.
func NewLiteralSecret(text string) Secret { return Secret{text: text, written: true} }

// Literal reports whether the text is written in the document itself, readable for
// everyone who can read the document, and not in the environment or another file.
func (s Secret) Literal() bool { return s.written && s.text != "" }

// IsFixed reports whether the document alone decides the text, which may be empty.
func (s Secret) IsFixed() bool { return s.written }

// Reveal returns the text itself, for the code that sends it.
func (s Secret) Reveal() string { return s.text }

// Resolve returns the text itself, which manager reads if the document names a secret of the
// secret manager; manager is nil for a document without one.
func (s Secret) Resolve(manager func(Secret) (string, error)) (string, error) {
	switch {
	case s.Ref == nil:
		return s.text, nil
	case manager == nil:
		return "", fmt.Errorf("secret %s needs a secret_manager", s.Ref.SecretName)
	}
	return manager(s)
}

// IsZero reports whether there is neither a text nor a reference.
func (s Secret) IsZero() bool { return s.text == "" && s.Ref == nil }

// String is ***, or nothing for the empty secret.
func (s Secret) String() string {
	if s.IsZero() {
		return ""
	}
	return redacted
}

// GoString is ***.
func (s Secret) GoString() string { return s.String() }

// Format is *** under every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.String())) }

// MarshalText is ***, in JSON, YAML and every other text encoding.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// SecretReference names a secret that the application's secret manager holds.
type SecretReference struct {
	Positioned
	// SecretName is the name of the secret in the secret manager.
	SecretName string `yaml:"secret_name" jsonschema:"required"`
	// Key picks one key of a secret that is a JSON object.
	Key string `yaml:"key"`
}
