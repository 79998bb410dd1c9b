// Package signin keeps the tokens of a user who has signed in at authorization servers
// with qtype login.
package signin

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/qtype-dev/qtype/internal/trust"
	"github.com/qtype-dev/qtype/spec"
)

// Key identifies a sign-in: the server that the tokens are for, and the client that got them.
type Key struct {
	Server   string // URL
	Issuer   string // the declared authorization server; empty for the one that the server names
	ClientID string // the declared client; empty for one that was registered for the user
	Scopes   string // the declared scopes, separated by spaces; empty for those that the server names
}

// KeyOf returns the key of an auth for a server.
func KeyOf(auth *spec.OAuth2LoginAuth, server string) Key {
	return Key{Server: server, Issuer: auth.Issuer, ClientID: auth.ClientID, Scopes: strings.Join(auth.Scopes, " ")}
}

// Tokens are what a sign-in gave, with what is needed to renew them.
type Tokens struct {
	Server       string    `json:"server"`
	TokenURL     string    `json:"token_url"`
	ClientID     string    `json:"client_id"`
	ClientSecret string    `json:"client_secret,omitempty"` // of a client that was registered for the user
	InHeader     bool      `json:"in_header,omitempty"`     // the client identifies itself in the header Authorization
	AccessToken  string    `json:"access_token"`
	TokenType    string    `json:"token_type,omitempty"`
	RefreshToken string    `json:"refresh_token,omitempty"`
	Expiry       time.Time `json:"expiry,omitzero"`
}

// Token returns the tokens as requests need them.
func (t *Tokens) Token() *oauth2.Token {
	return &oauth2.Token{AccessToken: t.AccessToken, TokenType: t.TokenType, RefreshToken: t.RefreshToken, Expiry: t.Expiry}
}

// Set replaces the tokens, the refresh token only if there is a new one.
func (t *Tokens) Set(fresh *oauth2.Token) {
	t.AccessToken, t.TokenType, t.Expiry = fresh.AccessToken, fresh.TokenType, fresh.Expiry
	if fresh.RefreshToken != "" {
		t.RefreshToken = fresh.RefreshToken
	}
}

// Secrets are the texts that no output may have.
func (t *Tokens) Secrets() []string {
	return []string{t.AccessToken, t.RefreshToken, t.ClientSecret}
}

// Folder is the folder of the files of sign-ins.
type Folder string

// Default returns the folder of the user.
func Default() (Folder, error) {
	state := trust.StateFolder()
	if state == "" {
		return "", errors.New("there is no home folder for tokens; set QTYPE_HOME")
	}
	return Folder(filepath.Join(state, "signin")), nil
}

func (f Folder) path(k Key) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{k.Server, k.Issuer, k.ClientID, k.Scopes}, "\n")))
	return filepath.Join(string(f), hex.EncodeToString(sum[:16])+".json")
}

// Load returns the tokens of a sign-in; nil if there are none.
func (f Folder) Load(k Key) (*Tokens, error) {
	raw, err := os.ReadFile(f.path(k))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	t := &Tokens{}
	if err := json.Unmarshal(raw, t); err != nil || t.Server != k.Server {
		return nil, fmt.Errorf("%s has no tokens for %s: remove it, and sign in again", f.path(k), k.Server)
	}
	return t, nil
}

// Save replaces the tokens of a sign-in. Only the user can read the file.
func (f Folder) Save(k Key, t *Tokens) error {
	raw, err := json.Marshal(t) //nolint:gosec // the file is for the secrets, and only the user can read it
	if err != nil {
		return err
	}
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(string(f), "new-*") // of mode 0600
	if err != nil {
		return err
	}
	_, err = file.Write(append(raw, '\n'))
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), f.path(k))
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}

// Remove removes the tokens of a sign-in, and reports whether there were any.
func (f Folder) Remove(k Key) (bool, error) {
	err := os.Remove(f.path(k))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
