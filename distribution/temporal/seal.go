package temporal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/qtype-dev/qtype/internal/durable"
	"github.com/qtype-dev/qtype/internal/memory/encrypted"
)

// Sealed data is sealedFormat, the id of the key, a salt, a nonce, and the output of AES-256-GCM
// with a key that is derived from both the key and the salt, so that the number of values
// is not limited.
const (
	sealedFormat = 1
	keyIDSize    = 8 // letters
	saltSize     = 16
	nonceSize    = 12
	sealedPrefix = 1 + keyIDSize + saltSize + nonceSize
)

// sealedEncoding is the encoding of encrypted payloads in their metadata.
const sealedEncoding = "binary/encrypted"

// sealer encrypts what runs and workers give to Temporal and store as blobs. The first key encrypts.
// A nil *sealer changes nothing.
type sealer struct{ keys []encrypted.Key }

// newSealer returns the sealer of a configuration, nil without keys.
func newSealer(cfg durable.Config) *sealer {
	if len(cfg.Keys) == 0 {
		return nil
	}
	return &sealer{keys: cfg.Keys}
}

// id identifies the key that encrypts.
func (s *sealer) id() string {
	if s == nil {
		return ""
	}
	return s.keys[0].ID()
}

// aead returns the cipher for a salt.
func aead(key encrypted.Key, salt []byte) (cipher.AEAD, error) {
	secret, err := key.Derive("temporal", salt)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// seal encrypts data. open needs the same owner.
func (s *sealer) seal(plain []byte, owner string) ([]byte, error) {
	if s == nil {
		return plain, nil
	}
	out := make([]byte, sealedPrefix, sealedPrefix+len(plain)+16)
	out[0] = sealedFormat
	copy(out[1:], s.keys[0].ID())
	random := out[1+keyIDSize:]
	if _, err := rand.Read(random); err != nil {
		return nil, err
	}
	a, err := aead(s.keys[0], random[:saltSize])
	if err != nil {
		return nil, err
	}
	return a.Seal(out, random[saltSize:], plain, []byte(owner)), nil
}

// open is the inverse of seal.
func (s *sealer) open(data []byte, owner string) ([]byte, error) {
	if s == nil {
		return data, nil
	}
	if len(data) < sealedPrefix || data[0] != sealedFormat {
		return nil, errors.New("not encrypted, although a key is given")
	}
	id, salt, nonce := string(data[1:1+keyIDSize]), data[1+keyIDSize:1+keyIDSize+saltSize], data[sealedPrefix-nonceSize:sealedPrefix]
	var known []string
	for _, k := range s.keys {
		if known = append(known, k.ID()); k.ID() != id {
			continue
		}
		a, err := aead(k, salt)
		if err != nil {
			return nil, err
		}
		plain, err := a.Open([]byte{}, nonce, data[sealedPrefix:], []byte(owner))
		if err != nil {
			return nil, errors.New("modified after encryption, or moved from another place")
		}
		return plain, nil
	}
	return nil, fmt.Errorf("encrypted with key %q, which is not among the given keys (%s)", id, strings.Join(known, ", "))
}

// Encode encrypts payloads; see converter.PayloadCodec.
func (s *sealer) Encode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	sealed := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		plain, err := p.Marshal()
		if err != nil {
			return nil, err
		}
		data, err := s.seal(plain, sealedEncoding)
		if err != nil {
			return nil, err
		}
		sealed[i] = &commonpb.Payload{Metadata: map[string][]byte{converter.MetadataEncoding: []byte(sealedEncoding)}, Data: data}
	}
	return sealed, nil
}

// Decode is the inverse of Encode. A payload that is not encrypted is an error, because anyone with
// access to Temporal could have written it.
func (s *sealer) Decode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	plain := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		data, err := s.open(p.GetData(), sealedEncoding)
		if err != nil {
			return nil, fmt.Errorf("a value in Temporal is %w", err)
		}
		plain[i] = &commonpb.Payload{}
		if err := plain[i].Unmarshal(data); err != nil {
			return nil, err
		}
	}
	return plain, nil
}

// dataConverter returns the converter of values in Temporal.
func dataConverter(c durable.Config) converter.DataConverter {
	if s := newSealer(c); s != nil {
		return converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), s)
	}
	return converter.GetDefaultDataConverter()
}

// failureConverter returns the converter of errors in Temporal, whose texts may have values of rows.
func failureConverter(c durable.Config) converter.FailureConverter {
	return temporal.NewDefaultFailureConverter(temporal.DefaultFailureConverterOptions{
		DataConverter: dataConverter(c), EncodeCommonAttributes: len(c.Keys) > 0,
	})
}
