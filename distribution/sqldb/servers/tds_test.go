package servers_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"unicode/utf16"

	"github.com/qtype-dev/qtype/internal/testkit"
)

// tdsServer speaks TDS 7.4, the protocol of SQL Server: it checks logins, records statements and
// their parameters, and answers each with the same result.
type tdsServer struct {
	address  string
	password string
	result   []byte // tokens of a result

	mu         sync.Mutex
	logins     []string // user, password and database of each login
	statements []string // with their parameters
}

// Types of messages.
const (
	tdsBatch    = 1
	tdsRPC      = 3
	tdsReply    = 4
	tdsLogin    = 16
	tdsPrelogin = 18
)

// newTDS starts a server, which accepts one password.
func newTDS(t *testing.T, password string, result []byte) *tdsServer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	s := &tdsServer{address: listener.Addr().String(), password: password, result: result}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer func() { _ = conn.Close() }()
				if err := s.serve(conn); err != nil && !errors.Is(err, io.EOF) {
					t.Errorf("TDS: %v", err)
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		running.Wait()
	})
	return s
}

// serve answers the messages of a connection.
func (s *tdsServer) serve(conn net.Conn) error {
	for {
		kind, body, err := readTDS(conn)
		if err != nil {
			return err
		}
		var reply []byte
		switch kind {
		case tdsPrelogin: // version, and that the server does not encrypt
			reply = []byte{0, 0, 11, 0, 6, 1, 0, 17, 0, 1, 0xff, 16, 0, 0, 0, 0, 0, 2}
		case tdsLogin:
			reply = s.login(body)
		case tdsBatch:
			s.record(ucs2(body[binary.LittleEndian.Uint32(body):]))
			reply = s.result
		case tdsRPC:
			text, err := rpcText(body[binary.LittleEndian.Uint32(body):])
			if err != nil {
				return err
			}
			s.record(text)
			reply = s.result
		default:
			return fmt.Errorf("unexpected message %d", kind)
		}
		if err := writeTDS(conn, reply); err != nil {
			return err
		}
	}
}

func (s *tdsServer) record(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.statements = append(s.statements, text)
}

// login checks the password of a LOGIN7 message.
func (s *tdsServer) login(body []byte) []byte {
	field := func(at int) []byte {
		offset, length := int(binary.LittleEndian.Uint16(body[at:])), int(binary.LittleEndian.Uint16(body[at+2:]))
		return body[offset : offset+2*length]
	}
	secret := bytes.Clone(field(44))
	for i, b := range secret {
		b ^= 0xa5
		secret[i] = b<<4 | b>>4
	}
	s.mu.Lock()
	s.logins = append(s.logins, strings.Join([]string{ucs2(field(40)), ucs2(secret), ucs2(field(68))}, " "))
	s.mu.Unlock()
	if ucs2(secret) != s.password {
		return append(tdsError(18456, "Login failed for user 'ada'."), tdsDone(2)...)
	}
	name := append([]byte{4}, toUCS2("Fake")...)
	ack := append(append([]byte{1, 0x74, 0, 0, 4}, name...), 16, 0, 0, 0)
	return append(binary.LittleEndian.AppendUint16([]byte{0xad}, uint16(len(ack))), append(ack, tdsDone(0)...)...)
}

// tdsError returns the token of an error.
func tdsError(number int32, message string) []byte {
	var b []byte
	b = binary.LittleEndian.AppendUint32(b, uint32(number))
	b = append(b, 1, 14)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(message)))
	b = append(b, toUCS2(message)...)
	b = append(b, 0, 0, 1, 0, 0, 0) // no server, no procedure, line 1
	return append(binary.LittleEndian.AppendUint16([]byte{0xaa}, uint16(len(b))), b...)
}

// tdsDone returns the token of an end.
func tdsDone(status byte) []byte { return append([]byte{0xfd, status, 0, 0, 0}, make([]byte, 8)...) }

// tdsColumn is a column of a result with the value of its only row.
type tdsColumn struct {
	name string
	info []byte // type and its properties
	data []byte // value with its length
}

// tdsResult returns the tokens of a result with one row, and one of nulls, which have the given bytes.
func tdsResult(columns []tdsColumn, nulls [][]byte) []byte {
	out := binary.LittleEndian.AppendUint16([]byte{0x81}, uint16(len(columns)))
	row := []byte{0xd1}
	for _, c := range columns {
		out = append(out, 0, 0, 0, 0, 1, 0) // no user type; the column may be null
		out = append(append(out, c.info...), byte(len(c.name)))
		out = append(out, toUCS2(c.name)...)
		row = append(row, c.data...)
	}
	out = append(append(out, row...), 0xd1)
	for _, null := range nulls {
		out = append(out, null...)
	}
	return append(out, tdsDone(0x10)...)
}

// readTDS reads a message of one or more packets.
func readTDS(conn net.Conn) (kind byte, body []byte, err error) {
	for {
		var head [8]byte
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			return 0, nil, io.EOF // the client has ended the connection
		}
		part := make([]byte, binary.BigEndian.Uint16(head[2:])-8)
		if _, err := io.ReadFull(conn, part); err != nil {
			return 0, nil, err
		}
		body = append(body, part...)
		if head[1]&1 == 1 {
			return head[0], body, nil
		}
	}
}

// writeTDS writes a message as packets.
func writeTDS(conn net.Conn, body []byte) error {
	const most = 4096 - 8
	for number := byte(1); ; number++ {
		part, last := body[:min(most, len(body))], byte(0)
		if body = body[len(part):]; len(body) == 0 {
			last = 1
		}
		head := []byte{tdsReply, last, 0, 0, 0, 0, number, 0}
		binary.BigEndian.PutUint16(head[2:], uint16(len(part)+8))
		if _, err := conn.Write(append(head, part...)); err != nil {
			return nil //nolint:nilerr // a client may end before the answer
		}
		if last == 1 {
			return nil
		}
	}
}

// rpcText returns a call of sp_executesql as text: the statement, and each parameter with its type.
func rpcText(b []byte) (string, error) {
	if binary.LittleEndian.Uint16(b) != 0xffff || binary.LittleEndian.Uint16(b[2:]) != 10 {
		return "", fmt.Errorf("not a call of sp_executesql")
	}
	var parts []string
	for b = b[6:]; len(b) > 0; {
		name := ucs2(b[1 : 1+2*int(b[0])])
		b = b[2+2*int(b[0]):]
		text, rest, err := tdsParameter(b)
		if err != nil {
			return "", err
		}
		if b = rest; name != "" {
			text = name + "=" + text
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, " | "), nil
}

// tdsParameter reads a parameter.
func tdsParameter(b []byte) (text string, rest []byte, err error) {
	short := func(at int) (string, []byte, error) { // a length of one byte
		end := at + 1 + int(b[at])
		return fmt.Sprintf("%x:%x", b[0], b[at+1:end]), b[end:], nil
	}
	switch b[0] {
	case 0xe7: // nvarchar, of at most 4000 characters or any number
		size := binary.LittleEndian.Uint16(b[1:])
		if b = b[8:]; size == 0xffff {
			return plpText(b)
		}
		n := binary.LittleEndian.Uint16(b)
		if n == 0xffff {
			return "null", b[2:], nil
		}
		return ucs2(b[2 : 2+n]), b[2+n:], nil
	case 0xa5: // varbinary
		n := binary.LittleEndian.Uint16(b[3:])
		return fmt.Sprintf("%x:%x", b[0], b[5:5+n]), b[5+n:], nil
	case 0x1f: // null
		return "null", b[1:], nil
	case 0x28: // date
		return short(1)
	case 0x26, 0x6d, 0x68, 0x2a, 0x2b: // int, float, bit, datetime2, datetimeoffset
		return short(2)
	}
	return "", nil, fmt.Errorf("unexpected type %x of a parameter", b[0])
}

// plpText reads a text in chunks.
func plpText(b []byte) (text string, rest []byte, err error) {
	var data []byte
	for b = b[8:]; ; {
		n := binary.LittleEndian.Uint32(b)
		if b = b[4:]; n == 0 {
			return ucs2(data), b, nil
		}
		data, b = append(data, b[:n]...), b[n:]
	}
}

func ucs2(b []byte) string {
	units := make([]uint16, len(b)/2)
	for i := range units {
		units[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	return string(utf16.Decode(units))
}

func toUCS2(text string) []byte {
	var b []byte
	for _, unit := range utf16.Encode([]rune(text)) {
		b = binary.LittleEndian.AppendUint16(b, unit)
	}
	return b
}
