package encryptedtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/memory/encrypted"
	"github.com/qtype-dev/qtype/internal/memory/storeurl"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec/chat"
)

// The variables that make the test binary a process that encrypts a store again.
const (
	reencryptAddress = "QTYPE_TEST_REENCRYPT"
	reencryptKeys    = "QTYPE_TEST_REENCRYPT_KEYS" // the new and the old one
)

// Main encrypts a store again if the variables name one, and does not return then: TestMain of a package with
// ReencryptKilled calls it. stores are those that can be opened; nil for those of the core.
func Main(stores storeurl.Openers) {
	address := os.Getenv(reencryptAddress)
	if address == "" {
		return
	}
	if err := reencryptAt(stores, address, strings.Split(os.Getenv(reencryptKeys), " ")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func reencryptAt(stores storeurl.Openers, address string, keys []string) error {
	newest, err := encrypted.ParseKey(keys[0])
	if err != nil {
		return err
	}
	old, err := encrypted.ParseKey(keys[1])
	if err != nil {
		return err
	}
	s, err := storeurl.Open(address, storeurl.Among(stores), storeurl.Encrypt(encrypted.Keys{Key: newest, Old: []encrypted.Key{old}}))
	if err != nil {
		return err
	}
	_, err = s.(*encrypted.Store).Reencrypt(context.Background(), "m")
	return errors.Join(err, s.Close())
}

// hexKey returns a key made of one digit as text.
func hexKey(digit int) string { return strings.Repeat(strconv.Itoa(digit), 64) }

// keyOf returns the key of hexKey.
func keyOf(t *testing.T, digit int) encrypted.Key {
	t.Helper()
	k, err := encrypted.ParseKey(hexKey(digit))
	testkit.Must(t, err)
	return k
}

// Opener returns a function that opens the store of an address with keys, and one that closes it.
func Opener(t *testing.T, stores storeurl.Openers, address string) func(encrypted.Keys) (*encrypted.Store, func()) {
	return func(keys encrypted.Keys) (*encrypted.Store, func()) {
		t.Helper()
		s, err := storeurl.Open(address, storeurl.Among(stores), storeurl.Encrypt(keys))
		testkit.Must(t, err)
		return s.(*encrypted.Store), func() { testkit.Must(t, s.Close()) }
	}
}

// ReencryptKilled kills processes that encrypt the store of an address again, at random moments
// (QTYPE_KILLS times, by default 3). After each of them the store can be read with both keys, and
// what it has is the same; in the end the new key is enough.
func ReencryptKilled(t *testing.T, stores storeurl.Openers, address string) {
	t.Helper()
	kills := 3
	if text := os.Getenv("QTYPE_KILLS"); text != "" {
		var err error
		kills, err = strconv.Atoi(text)
		testkit.Must(t, err)
	}
	open := Opener(t, stores, address)
	contentWith := func(keys encrypted.Keys) string {
		s, closeStore := open(keys)
		defer closeStore()
		var all []string
		for i := range 4 {
			text, err := ReadAll(t.Context(), NewMemory(t, s), fmt.Sprint("s", i))
			testkit.Must(t, err)
			all = append(all, text)
		}
		return strings.Join(all, "\n")
	}
	s, closeStore := open(encrypted.Keys{Key: keyOf(t, 1)})
	for i := range 4 {
		fillReencrypted(t, NewMemory(t, s), fmt.Sprint("s", i))
	}
	closeStore()
	want := contentWith(encrypted.Keys{Key: keyOf(t, 1)})
	done, digit := 0, 1
	for killed := 0; killed < kills; {
		next := digit%9 + 1
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), reencryptAddress+"="+address, reencryptKeys+"="+hexKey(next)+" "+hexKey(digit))
		cmd.Stderr = os.Stderr
		testkit.Must(t, cmd.Start())
		time.AfterFunc(time.Duration(10+rand.IntN(150))*time.Millisecond, func() { _ = cmd.Process.Kill() }) // at any moment
		switch err := cmd.Wait(); {
		case err == nil:
			done++
			digit = next
			if got := contentWith(encrypted.Keys{Key: keyOf(t, digit)}); got != want {
				t.Fatalf("with the new key alone: got\n%s\nwant\n%s", got, want)
			}
		case cmd.ProcessState.ExitCode() == 1:
			t.Fatal("the process failed")
		default:
			killed++
			if got := contentWith(encrypted.Keys{Key: keyOf(t, next), Old: []encrypted.Key{keyOf(t, digit)}}); got != want {
				t.Fatalf("after it was killed: got\n%s\nwant\n%s", got, want)
			}
		}
	}
	next := digit%9 + 1
	testkit.Must(t, reencryptAt(stores, address, []string{hexKey(next), hexKey(digit)}))
	if got := contentWith(encrypted.Keys{Key: keyOf(t, next)}); got != want {
		t.Errorf("in the end: got\n%s\nwant\n%s", got, want)
	}
	t.Logf("%d processes were killed, %d ended", kills, done)
}

// fillReencrypted adds turns and many messages to a session.
func fillReencrypted(t *testing.T, m *memory.Memory, session string) {
	t.Helper()
	RunTurns(t, m, session)
	for n := range 100 {
		testkit.Must(t, m.Append(t.Context(), session, chat.Text(chat.User, fmt.Sprint("message ", n))))
	}
}
