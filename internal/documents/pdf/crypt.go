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
)

// crypt decrypts the strings and streams of a file that opens without a password: such
// files only state restrictions, such as on printing.
type crypt struct {
	key      []byte
	version  int  // V of the encryption dictionary
	aes      bool // strings and streams are encrypted by AES, not RC4
	identity bool // nothing is encrypted
	metadata bool
}

// padding completes passwords (ISO 32000-1, 7.6.3.3).
var padding = []byte("\x28\xBF\x4E\x5E\x4E\x75\x8A\x41\x64\x00\x4E\x56\xFF\xFA\x01\x08\x2E\x2E\x00\xB6\xD0\x68\x3E\x80\x2F\x0C\xA9\xFE\x64\x53\x69\x7A")

// decrypt computes the key for the empty password.
func (f *file) decrypt() error {
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
	var ok bool
	if c.version >= 5 {
		c.key, ok = f.key256(d)
	} else {
		c.key, ok = f.keyRC4(d, min(max(length, 5), 16), c.metadata)
	}
	if !ok {
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

// keyRC4 computes the key of versions 1 to 4 and reports whether the empty password is
// right.
func (f *file) keyRC4(d dict, length int, metadata bool) ([]byte, bool) {
	revision := f.integer(d["R"], 2)
	owner, user := textBytes(f.resolve(d["O"])), textBytes(f.resolve(d["U"]))
	var id []byte
	if ids, ok := f.resolve(f.trailer["ID"]).(array); ok && len(ids) > 0 {
		id = textBytes(f.resolve(ids[0]))
	}
	if len(owner) < 32 || len(user) < 16 {
		return nil, false
	}
	permissions := make([]byte, 4)
	binary.LittleEndian.PutUint32(permissions, uint32(int64(f.integer(d["P"], 0))))
	h := md5.New() //nolint:gosec // the algorithm of the format
	for _, part := range [][]byte{padding, owner[:32], permissions, id} {
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
	if revision == 2 {
		return key, bytes.Equal(applyRC4(key, padding), user)
	}
	sum := md5.Sum(append(bytes.Clone(padding), id...)) //nolint:gosec // the algorithm of the format
	check := applyRC4(key, sum[:])
	for i := 1; i <= 19; i++ {
		k := bytes.Clone(key)
		for j := range k {
			k[j] ^= byte(i)
		}
		check = applyRC4(k, check)
	}
	return key, bytes.Equal(check, user[:16])
}

func applyRC4(key, data []byte) []byte {
	out := make([]byte, len(data))
	if c, err := rc4.NewCipher(key); err == nil { //nolint:gosec // the algorithm of the format
		c.XORKeyStream(out, data)
	}
	return out
}

// key256 computes the key of version 5.
func (f *file) key256(d dict) ([]byte, bool) {
	user, encrypted := textBytes(f.resolve(d["U"])), textBytes(f.resolve(d["UE"]))
	if len(user) < 48 || len(encrypted) < 32 {
		return nil, false
	}
	hash := func(salt []byte) []byte {
		if f.integer(d["R"], 5) == 5 {
			sum := sha256.Sum256(salt)
			return sum[:]
		}
		return hardenedHash(salt)
	}
	if !bytes.Equal(hash(user[32:40]), user[:32]) {
		return nil, false
	}
	block, err := aes.NewCipher(hash(user[40:48]))
	if err != nil {
		return nil, false
	}
	key := make([]byte, 32)
	cipher.NewCBCDecrypter(block, make([]byte, 16)).CryptBlocks(key, encrypted[:32])
	return key, true
}

// hardenedHash is algorithm 2.B of ISO 32000-2 for the empty password.
func hardenedHash(salt []byte) []byte {
	sum := sha256.Sum256(salt)
	k := sum[:]
	for round := 0; ; round++ {
		block, err := aes.NewCipher(k[:16])
		if err != nil {
			return nil
		}
		data := bytes.Repeat(k, 64)
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
		if round >= 63 && int(data[len(data)-1]) <= round-32 {
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
