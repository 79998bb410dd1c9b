package encrypted_test

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
	memoryservers "github.com/qtype-dev/qtype/internal/memory/servers"
	"github.com/qtype-dev/qtype/internal/memory/storeurl"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
)

// The variables that make the test binary a process that encrypts a store again.
const (
	reencryptAddress = "QTYPE_TEST_REENCRYPT"
	reencryptKeys    = "QTYPE_TEST_REENCRYPT_KEYS" // the new and the old one
)

// reencryptMain encrypts a store again if the variables name one, and does not return then.
func reencryptMain() {
	address := os.Getenv(reencryptAddress)
	if address == "" {
		return
	}
	if err := reencryptAt(address, strings.Split(os.Getenv(reencryptKeys), " ")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func reencryptAt(address string, keys []string) error {
	newest, err := encrypted.ParseKey(keys[0])
	if err != nil {
		return err
	}
	old, err := encrypted.ParseKey(keys[1])
	if err != nil {
		return err
	}
	s, err := storeurl.Open(address, storeurl.Among(memoryservers.Openers()), storeurl.Encrypt(encrypted.Keys{Key: newest, Old: []encrypted.Key{old}}))
	if err != nil {
		return err
	}
	_, err = s.(*encrypted.Store).Reencrypt(context.Background(), "m")
	return errors.Join(err, s.Close())
}

// hexKey returns a key made of one digit as text.
func hexKey(digit int) string { return strings.Repeat(strconv.Itoa(digit), 64) }

// TestStore_ReencryptKilled kills processes that encrypt a store again, at random moments
// (QTYPE_KILLS times, by default 3, in each store). After each of them the store can be
// read with both keys, and what it has is the same; in the end the new key is enough.
func TestStore_ReencryptKilled(t *testing.T) {
	kills := 3
	if text := os.Getenv("QTYPE_KILLS"); text != "" {
		var err error
		kills, err = strconv.Atoi(text)
		testkit.Must(t, err)
	}
	for name, address := range newServers(t) {
		t.Run(name, func(t *testing.T) { reencryptKilled(t, address(), kills) })
	}
}

func reencryptKilled(t *testing.T, address string, kills int) {
	t.Helper()
	keyOf := func(digit int) encrypted.Key {
		k, err := encrypted.ParseKey(hexKey(digit))
		testkit.Must(t, err)
		return k
	}
	contentWith := func(keys encrypted.Keys) string {
		s := openAddress(t, address, keys)
		defer func() { testkit.Must(t, s.Close()) }()
		var all []string
		for i := range 4 {
			text, err := readAll(t.Context(), newMemory(t, s), fmt.Sprint("s", i))
			testkit.Must(t, err)
			all = append(all, text)
		}
		return strings.Join(all, "\n")
	}
	s := openAddress(t, address, encrypted.Keys{Key: keyOf(1)})
	for i := range 4 {
		fillReencrypted(t, newMemory(t, s), fmt.Sprint("s", i))
	}
	testkit.Must(t, s.Close())
	want := contentWith(encrypted.Keys{Key: keyOf(1)})
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
			if got := contentWith(encrypted.Keys{Key: keyOf(digit)}); got != want {
				t.Fatalf("with the new key alone: got\n%s\nwant\n%s", got, want)
			}
		case cmd.ProcessState.ExitCode() == 1:
			t.Fatal("the process failed")
		default:
			killed++
			if got := contentWith(encrypted.Keys{Key: keyOf(next), Old: []encrypted.Key{keyOf(digit)}}); got != want {
				t.Fatalf("after it was killed: got\n%s\nwant\n%s", got, want)
			}
		}
	}
	next := digit%9 + 1
	testkit.Must(t, reencryptAt(address, []string{hexKey(next), hexKey(digit)}))
	if got := contentWith(encrypted.Keys{Key: keyOf(next)}); got != want {
		t.Errorf("in the end: got\n%s\nwant\n%s", got, want)
	}
	t.Logf("%d processes were killed, %d ended", kills, done)
}

// fillReencrypted adds turns and many messages to a session.
func fillReencrypted(t *testing.T, m *memory.Memory, session string) {
	t.Helper()
	runTurns(t, m, session)
	for n := range 100 {
		testkit.Must(t, m.Append(t.Context(), session, user(fmt.Sprint("message ", n))))
	}
}
