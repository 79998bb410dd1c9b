package snowflake

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/textfmt"
)

// Lifetime of a signed token, and the time before its end when another one is made.
const (
	tokenTime = time.Hour
	early     = 5 * time.Minute
)

// KeyPair signs tokens of a user with a private key. It is safe for concurrent use.
type KeyPair struct {
	file    string
	subject string // ACCOUNT.USER

	mu    sync.Mutex
	token string
	until time.Time
}

// NewKeyPair returns a KeyPair. The file has an RSA key in PKCS #8 that is not encrypted; it is read at
// the first request.
func NewKeyPair(file, account, user string) *KeyPair {
	account, _, _ = strings.Cut(account, ".") // the region is not part of the name
	return &KeyPair{file: file, subject: strings.ToUpper(account) + "." + strings.ToUpper(user)}
}

// Authorize adds a token to a request.
func (k *KeyPair) Authorize(req *http.Request) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now := time.Now(); now.After(k.until) {
		key, err := readKey(k.file)
		if err != nil {
			return err
		}
		if k.token, err = sign(key, k.subject, now); err != nil {
			return err
		}
		k.until = now.Add(tokenTime - early)
	}
	req.Header.Set("Authorization", "Bearer "+k.token)
	req.Header.Set("X-Snowflake-Authorization-Token-Type", "KEYPAIR_JWT")
	return nil
}

func readKey(file string) (*rsa.PrivateKey, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, errors.New("private_key_file: cannot be read: " + textfmt.WithoutPath(err).Error())
	}
	block, _ := pem.Decode(data)
	switch {
	case block == nil:
		return nil, errors.New("private_key_file: the file is not in PEM format")
	case strings.HasPrefix(block.Type, "ENCRYPTED"):
		return nil, errors.New("private_key_file: the key is encrypted: write a copy without a passphrase, which only you can read")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if key, ok := parsed.(*rsa.PrivateKey); ok && err == nil {
		return key, nil
	}
	return nil, errors.New("private_key_file: the file has no RSA key in PKCS #8 (-----BEGIN PRIVATE KEY-----)")
}

// sign returns a token for the subject: a JWT with RS256, whose issuer names the public key.
func sign(key *rsa.PrivateKey, subject string, now time.Time) (string, error) {
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return "", err
	}
	digest := sha256.Sum256(public)
	claims, err := json.Marshal(map[string]any{"iss": subject + ".SHA256:" + base64.StdEncoding.EncodeToString(digest[:]), "sub": subject,
		"iat": now.Unix(), "exp": now.Add(tokenTime).Unix()})
	if err != nil {
		return "", err
	}
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." + base64.RawURLEncoding.EncodeToString(claims)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	return text + "." + base64.RawURLEncoding.EncodeToString(signature), err
}
