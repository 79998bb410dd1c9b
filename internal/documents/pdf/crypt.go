package pdf

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/md5" //nolint:gosec // the algorithm of the format
	"crypto/rc4" //nolint:gosec // the algorithm of the format
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"slices"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/unicode/norm"
)

// crypt decrypts the strings and streams of a file. Many files open without a password, and only
// state restrictions, such as on printing.
type crypt struct {
	key      []byte
	version  int  // V of the encryption dictionary
	aes      bool // strings and streams are encrypted by AES, not RC4
	identity bool // nothing is encrypted
	metadata bool
}

// padding completes passwords (ISO 32000-1, 7.6.3.3).
var padding = []byte("\x28\xBF\x4E\x5E\x4E\x75\x8A\x41\x64\x00\x4E\x56\xFF\xFA\x01\x08\x2E\x2E\x00\xB6\xD0\x68\x3E\x80\x2F\x0C\xA9\xFE\x64\x53\x69\x7A")

// decrypt finds the key of the file: by the empty password, or by a password of its users or its owner.
func (f *file) decrypt(password string) error {
	d := f.dict(f.trailer["Encrypt"])
	if d == nil || d["Filter"] != name("Standard") {
		return ErrEncrypted
	}
	c := &crypt{version: f.integer(d["V"], 0), metadata: true}
	if b, ok := f.resolve(d["EncryptMetadata"]).(bool); ok {
		c.metadata = b
	}
	length := f.integer(d["Length"], 40) / 8
	if c.version >= 4 {
		filters := f.dict(d["CF"])
		method := f.dict(filters[nameOf(f.resolve(d["StmF"]))])
		switch nameOf(f.resolve(method["CFM"])) {
		case "AESV2", "AESV3":
			c.aes = true
		case "V2":
		default:
			c.identity = true
		}
		length = 16
	}
	if c.version == 1 {
		length = 5
	}
	if c.version >= 5 {
		c.key = f.key256(d, unicodePassword(password))
	} else {
		c.key = f.keyRC4(d, min(max(length, 5), 16), c.metadata, password)
	}
	switch {
	case c.key != nil:
	case password != "":
		return ErrPassword
	default:
		return ErrEncrypted
	}
	f.crypt = c
	f.cache, f.streams, f.numbers = map[int]object{}, map[int][]object{}, map[int][]int{}
	if r, isRef := f.trailer["Encrypt"].(ref); isRef {
		f.cache[r.number] = d // never encrypted itself
	}
	return nil
}

func nameOf(o object) name { n, _ := o.(name); return n }

func textBytes(o object) []byte { s, _ := o.(text); return []byte(s) }

// unicodePassword returns a password as version 5 has it.
func unicodePassword(password string) []byte {
	raw := []byte(norm.NFKC.String(password))
	return raw[:min(len(raw), 127)]
}

// padded returns a password as versions 1 to 4 have it.
func padded(password []byte) []byte { return slices.Concat(password, padding)[:len(padding)] }

// keyRC4 returns the key of versions 1 to 4, nil if the password is wrong. The text of a password has
// the bytes of Latin-1; some programs write those of UTF-8.
func (f *file) keyRC4(d dict, length int, metadata bool, password string) []byte {
	passwords := [][]byte{nil, []byte(password)}
	if latin, err := charmap.ISO8859_1.NewEncoder().Bytes([]byte(password)); err == nil {
		passwords = append(passwords, latin)
	}
	for _, p := range passwords {
		for _, user := range [][]byte{padded(p), f.userPassword(d, length, p)} {
			if key := f.userKey(d, length, metadata, user); key != nil {
				return key
			}
		}
	}
	return nil
}

// userPassword returns the padded password of the users, from that of the owner (algorithm 7 of
// ISO 32000-1).
func (f *file) userPassword(d dict, length int, owner []byte) []byte {
	sum := md5.Sum(padded(owner)) //nolint:gosec // the algorithm of the format
	key, rounds := sum[:], 0
	if f.integer(d["R"], 2) >= 3 {
		for range 50 {
			sum := md5.Sum(key) //nolint:gosec // the algorithm of the format
			key = sum[:]
		}
		rounds = 19
	}
	user := textBytes(f.resolve(d["O"]))
	for i := rounds; i >= 0; i-- {
		user = applyRC4(xor(key[:length], byte(i)), user)
	}
	return padded(user)
}

// xor returns a key with each of its bytes changed.
func xor(key []byte, by byte) []byte {
	key = bytes.Clone(key)
	for i := range key {
		key[i] ^= by
	}
	return key
}

// userKey returns the key for a padded password of the users, nil if it is wrong.
func (f *file) userKey(d dict, length int, metadata bool, password []byte) []byte {
	revision := f.integer(d["R"], 2)
	owner, user := textBytes(f.resolve(d["O"])), textBytes(f.resolve(d["U"]))
	var id []byte
	if ids, ok := f.resolve(f.trailer["ID"]).(array); ok && len(ids) > 0 {
		id = textBytes(f.resolve(ids[0]))
	}
	if len(owner) < 32 || len(user) < 16 {
		return nil
	}
	permissions := make([]byte, 4)
	binary.LittleEndian.PutUint32(permissions, uint32(int64(f.integer(d["P"], 0))))
	h := md5.New() //nolint:gosec // the algorithm of the format
	for _, part := range [][]byte{password, owner[:32], permissions, id} {
		h.Write(part)
	}
	if revision >= 4 && !metadata {
		h.Write([]byte{255, 255, 255, 255})
	}
	key := h.Sum(nil)
	if revision >= 3 {
		for range 50 {
			sum := md5.Sum(key[:length]) //nolint:gosec // the algorithm of the format
			key = sum[:]
		}
	}
	key = key[:length]
	check, rounds := padding, 1
	if revision > 2 {
		sum := md5.Sum(slices.Concat(padding, id)) //nolint:gosec // the algorithm of the format
		check, user, rounds = sum[:], user[:16], 20
	}
	for i := range rounds {
		check = applyRC4(xor(key, byte(i)), check)
	}
	if !bytes.Equal(check, user) {
		return nil
	}
	return key
}

func applyRC4(key, data []byte) []byte {
	out := make([]byte, len(data))
	if c, err := rc4.NewCipher(key); err == nil { //nolint:gosec // the algorithm of the format
		c.XORKeyStream(out, data)
	}
	return out
}

// key256 returns the key of version 5, nil if the password is wrong.
func (f *file) key256(d dict, password []byte) []byte {
	user, owner := textBytes(f.resolve(d["U"])), textBytes(f.resolve(d["O"]))
	if len(user) < 48 {
		return nil
	}
	of := func(password, check, data []byte, encrypted name) []byte {
		key := textBytes(f.resolve(d[encrypted]))
		hash := func(salt []byte) []byte {
			if f.integer(d["R"], 5) == 5 {
				sum := sha256.Sum256(slices.Concat(password, salt, data))
				return sum[:]
			}
			return hardenedHash(password, salt, data)
		}
		if len(check) < 48 || len(key) < 32 || !bytes.Equal(hash(check[32:40]), check[:32]) {
			return nil
		}
		block, err := aes.NewCipher(hash(check[40:48]))
		if err != nil {
			return nil
		}
		out := make([]byte, 32)
		cipher.NewCBCDecrypter(block, make([]byte, 16)).CryptBlocks(out, key[:32])
		return out
	}
	for _, p := range [][]byte{nil, password} {
		if key := of(p, user, nil, "UE"); key != nil {
			return key
		}
		if key := of(p, owner, user[:48], "OE"); key != nil {
			return key
		}
	}
	return nil
}

// hardenedHash is algorithm 2.B of ISO 32000-2. data is empty for a password of the users.
func hardenedHash(password, salt, data []byte) []byte {
	sum := sha256.Sum256(slices.Concat(password, salt, data))
	k := sum[:]
	for round := 0; ; round++ {
		block, err := aes.NewCipher(k[:16])
		if err != nil {
			return nil
		}
		data := bytes.Repeat(slices.Concat(password, k, data), 64)
		cipher.NewCBCEncrypter(block, k[16:32]).CryptBlocks(data, data)
		total := 0
		for _, b := range data[:16] {
			total += int(b)
		}
		switch total % 3 {
		case 0:
			h := sha256.Sum256(data)
			k = h[:]
		case 1:
			h := sha512.Sum384(data)
			k = h[:]
		default:
			h := sha512.Sum512(data)
			k = h[:]
		}
		if round >= 63 && int(data[len(data)-1]) <= round-31 { // rounds are counted from 1
			return k[:32]
		}
	}
}

// object decrypts the strings and the data of an object.
func (c *crypt) object(o object, r ref, depth int) object {
	if c.identity || depth > maxDepth {
		return o
	}
	switch o := o.(type) {
	case text:
		return text(c.bytes([]byte(o), r))
	case array:
		for i := range o {
			o[i] = c.object(o[i], r, depth+1)
		}
	case dict:
		for key, value := range o {
			o[key] = c.object(value, r, depth+1)
		}
	case *stream:
		if o.dict["Type"] == name("XRef") || o.dict["Type"] == name("Metadata") && !c.metadata {
			return o
		}
		c.object(o.dict, r, depth+1)
		o.raw = c.bytes(o.raw, r)
	}
	return o
}

// bytes decrypts data of an object.
func (c *crypt) bytes(data []byte, r ref) []byte {
	key := c.key
	if c.version < 5 {
		key = append(bytes.Clone(key), byte(r.number), byte(r.number>>8), byte(r.number>>16), byte(r.generation), byte(r.generation>>8))
		if c.aes {
			key = append(key, "sAlT"...)
		}
		sum := md5.Sum(key) //nolint:gosec // the algorithm of the format
		key = sum[:min(len(c.key)+5, 16)]
	}
	if !c.aes {
		return applyRC4(key, data)
	}
	block, err := aes.NewCipher(key)
	if err != nil || len(data) < 32 {
		return nil
	}
	initial, body := data[:16], bytes.Clone(data[16:len(data)-len(data)%16])
	cipher.NewCBCDecrypter(block, initial).CryptBlocks(body, body)
	if pad := int(body[len(body)-1]); pad >= 1 && pad <= 16 {
		body = body[:len(body)-pad]
	}
	return body
}
